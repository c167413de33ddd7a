// Draws active neurons by sticky resampling, a process whose statistics are known in closed form
// (closed_forms.h):
//
// - A neuron has a rate p, of a beta distribution, and an event u, uniform in [0, 1); it is active if
//   u < p. From one token to the next it keeps its event with probability lambda, else it draws another one.
// - In each sequence a share chi of the neurons have other rates than in other sequences, and blocks of
//   neurons are hotter or colder together (eta); each layer's mean rate is as without blocks.
// - A share kappa of the neurons of each layer but the first copy one of the layer before, of the same block:
//   its position among the rates, and its event, a little shifted.
//
// The same profile, shape and seed give the same bits on every machine, in any order of the sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/result.h"
#include "tools/lab/activity/activity_source.h"
#include "tools/lab/activity/profile.h"
#include "tools/lab/activity/rate_table.h"

namespace tierd {

class StickyActivity final : public ActivitySource {
 public:
  struct Options {
    std::vector<uint32_t> neurons;  // [layers], none of them 0
    uint64_t seed = 1;
    uint32_t sequences = 1;
    uint32_t first_text = 0;  // sequence s is text first_text + s; texts differ in context and events
    bool by_depth = false;    // see layer_rates
  };
  // Errors: those of layer_rates.
  static Result<StickyActivity> create(const ActivityProfile& profile, Options options);

  uint32_t layers() const override { return static_cast<uint32_t>(layers_.size()); }
  uint32_t neurons(uint32_t layer) const override { return layers_[layer].n; }
  uint32_t sequences() const override { return options_.sequences; }
  // Different threads may advance different sequences at the same time.
  void next_token(uint32_t sequence) override;
  ActiveBits active(uint32_t sequence, uint32_t layer) const override {
    return sequences_[sequence].layers[layer].bits;
  }

  // A copy has its parent's event, shifted, and its position among the rates.
  struct Copy {
    uint32_t neuron = 0;
    uint32_t parent = 0;  // of the layer before
    uint32_t shift = 0;   // of the event, modulo 2^32
  };
  std::span<const Copy> copies(uint32_t layer) const { return layers_[layer].copies; }

 private:
  struct Layer {
    uint32_t n = 0;
    uint32_t table = 0;
    double mean = 0;             // of the rates
    std::vector<uint64_t> draw;  // bits: the neurons that are no copies
    std::vector<Copy> copies;    // ascending
  };
  struct LayerState {
    std::vector<uint32_t> thresholds;  // rates, as shares of 2^32
    std::vector<uint32_t> events;
    std::vector<uint64_t> bits;
  };
  struct Sequence {
    uint64_t tokens = 0;
    std::vector<LayerState> layers;
  };

  StickyActivity(const ActivityProfile& profile, Options options)
      : profile_(profile), options_(std::move(options)), sequences_(options_.sequences) {}
  void make_copies(uint32_t layer);
  void begin(uint32_t sequence);
  // Returns [neurons] normal numbers, which the layer's table makes rates. `before`: the layer before's.
  std::vector<float> place_rates(uint32_t layer, uint32_t text, const std::vector<float>& before) const;
  void recentre(const Layer& layer, std::vector<float>& places) const;
  void draw_events(uint32_t layer, uint32_t text, Sequence& sequence) const;
  void copy_events(const Layer& layer, const LayerState& before, LayerState& state) const;
  uint32_t block_begin(uint32_t block, uint32_t n) const {
    return static_cast<uint32_t>(uint64_t{block} * n / profile_.blocks);
  }

  ActivityProfile profile_;
  Options options_;
  std::vector<Layer> layers_;
  std::vector<RateTable> tables_;
  std::vector<Sequence> sequences_;
};

}  // namespace tierd
