// Neurons of a site with half of the weights zero, dense or as bitmaps, and a plan that computes only that
// site.
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "core/base/random.h"
#include "core/model/layout/bitmap.h"
#include "core/model/layout/codec.h"

namespace tierd {

// The neurons of a site in f16, half zero, one after the other.
struct PrunedNeurons {
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  PrunedNeurons(const Cut& cut_, bool compressed, Random random) : cut(cut_), encodings(3, Encoding::f16) {
    const Bitmap halves = *Bitmap::of(cut, encodings);
    CompressedNeurons sizes{halves, {}};
    for (uint32_t n = 0; n < neurons(cut); ++n) {
      std::vector<float> values(neuron_bytes(cut, encodings, n) / 2);
      for (float& value : values) value = random.below(2) == 0 ? 0.0F : random.symmetric();
      std::vector<std::byte> dense(values.size() * 2);
      encode(Encoding::f16, values, dense);
      std::vector<std::byte> kept = dense;
      if (compressed) {
        kept.resize(compressed_bytes(halves, dense));
        compress(halves, dense, kept);
      }
      sizes.bytes.push_back(static_cast<uint32_t>(kept.size()));
      units.push_back({n, static_cast<uint32_t>(memory.size())});
      memory.resize(memory.size() + divide_up(kept.size(), sizeof(Line)));
      std::memcpy(memory[units.back().place].bytes, kept.data(), kept.size());
    }
    if (compressed) compression = std::move(sizes);
  }
  const std::byte* data() const { return memory.data()->bytes; }

  Cut cut;
  Encodings encodings;
  std::optional<CompressedNeurons> compression;
  std::vector<Line> memory;
  std::vector<Unit> units;
};

struct PrunedCase {
  const char* name;
  Cut cut;
  bool gather = false;
};
inline std::vector<PrunedCase> pruned_cases() {
  return {
      {"rows", Rows{.n_in = 72, .stacked = {100, 28, 22}, .rows = 48}},
      {"rows of 2400 bytes", Rows{.n_in = 75, .stacked = {40}, .rows = 16}},  // the last place is half used
      {"gathered rows", Rows{.n_in = 72, .stacked = {40}, .rows = 32}, true},
      {"bundles", Bundles{72, 150, true}},
      {"bundles without gate", Bundles{40, 64, false}},
      {"columns", Columns{130, 72}}};
}

// Buffer 0 is the input and buffer 1 the output, for `rows` rows.
inline ComputePlan plan_of_pruned(const PrunedNeurons& neurons, bool gather, uint32_t rows) {
  ComputePlan plan;
  const uint32_t width = std::max(inputs(neurons.cut), outputs(neurons.cut));
  plan.buffers = {{"in", width, 0},
                  {"out", width, 0},
                  {"hidden", tierd::neurons(neurons.cut), 0},
                  {"up", tierd::neurons(neurons.cut), 0}};
  plan.max_rows = rows;
  plan.context = 1;
  SiteWork site;
  site.cut = neurons.cut;
  site.editions = {0};
  site.gather = gather;
  site.in = gather ? kNoBuffer : 0;
  site.out = 1;
  site.ffn.activation = Activation::relu;
  site.ffn.hidden = 2;
  site.ffn.up = 3;
  plan.editions = {neurons.encodings};
  plan.compressed = {neurons.compression};
  plan.sites = {site};
  return plan;
}

}  // namespace tierd
