// M2Cache's cache of DRAM (5.4), with two areas of whole layers. In the fixed area the first n layers stay,
// so that they are not loaded again for each token. The dynamic area holds the next layers: a layer is loaded
// some layers ahead of its pass, with all its missing neurons, because the neurons of a token are known at
// most one layer ahead, and loading a layer takes longer than computing one (the paper: twice as long, so a
// layer is loaded two or more layers ahead).
//
// The dynamic area is the memory's staging: a step visits its layers cyclically, so a first-in, first-out
// queue of layers never uses a layer twice. Neurons that the pass of a layer has not taken leave when it is
// over. Only layers that do not stay count as ahead: while layers of the fixed area are computed, the next
// streaming ones are loaded, as many as the distance says.
//
// Neurons that every step uses whole (attention, the head) belong to their layer like the rest, unless the
// memories over this one have room for all of them: then those keep them, and this one need not.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "tierd/policy/fixed_set.hpp"
#include "tierd/policy/step_parts.hpp"

namespace {

constexpr uint32_t kLeastDistance = 2;  // 5.4

constexpr tierd_param kParams[] = {
    tierd::integer(
        "fixed", "-1", -1, 65535,
        "number of layers that are kept, the first ones; -1: as many as fit, the last one in part"),
    tierd::integer("distance", "0", 0, 65535,
                   "number of layers by which loading is ahead of the passes; 0: as many as fit in the "
                   "staging, at least 2 (the paper: two or more)"),
    tierd::flag("skip_held", "false",
                "when a layer is loaded, leave out the neurons that a memory over this one holds (the paper "
                "loads all that this memory lacks)"),
};

class Layers : public tierd::FixedSet {
 public:
  explicit Layers(const tierd::Host& host)
      : FixedSet(host),
        fixed_(host.integer("fixed")),
        distance_(static_cast<uint32_t>(host.integer("distance"))),
        skip_held_(host.flag("skip_held")),
        step_(tierd::step_parts(host)),
        streams_(host.n_editions()),
        asked_(step_.parts.size(), 0) {}

  void share(uint64_t bytes, uint32_t* max_slots) {
    const bool whole_is_above = has_room_above();
    int64_t layers = 0;
    limited_ = false;
    for (const tierd::StepPart& part : step_.parts) {
      const bool stays = !part.is_layer || fixed_ < 0 || layers < fixed_;
      bool all_stay = stays;
      for (const uint32_t e : part.editions) {
        const bool above = whole_is_above && !tierd::used_in_part(host().site_of(e));
        all_stay = place(e, stays && !above ? max_slots[e] : 0, !above, bytes, max_slots) && all_stay;
      }
      layers += part.is_layer && all_stay ? 1 : 0;
    }
    for (const uint32_t e : step_.embeddings) place(e, max_slots[e], false, bytes, max_slots);
    forget();
    host().metric("layers.fixed", static_cast<double>(layers));
    host().metric("layers.distance", distance());
  }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    limited_ = false;
    name_surplus(max_slots, victims);
  }

  // A cache that replaces another has that one's slots at first.
  void resplit(uint32_t* wanted) { *wanted = limited_ ? 1 : 0; }

  void ahead(uint32_t site) {
    const size_t part = part_of(site);
    if (part == present_) return;
    if (present_ != kNone && part < present_) ++steps_;
    present_ = part;
    const uint32_t n = host().n_sites();
    uint32_t left = distance();
    for (size_t k = 1; k < step_.parts.size() && left != 0; ++k) {
      const size_t later = (part + k) % step_.parts.size();
      if (!is_streaming(later)) continue;
      --left;
      const uint64_t pass = steps_ + (later < part ? 1 : 0) + 1;
      if (asked_[later] >= pass) continue;
      asked_[later] = pass;
      for (const uint32_t e : step_.parts[later].editions) load(e, (host().edition(e).site + n - site) % n);
    }
  }

  // Earlier reads ahead may have been given up.
  void begin_sequence(uint64_t /*sequence*/) { forget(); }

 private:
  static constexpr size_t kNone = std::numeric_limits<size_t>::max();

  // Keeps as many neurons of the edition as `most` and the bytes allow; the others may stream. Returns
  // whether none do.
  bool place(uint32_t e, uint32_t most, bool may_stream, uint64_t& bytes, uint32_t* max_slots) {
    std::vector<uint32_t> kept;
    streams_[e].clear();
    const uint64_t slot = host().edition(e).bytes;
    uint32_t at_home = 0;
    for (uint32_t i = 0; i < host().edition(e).n; ++i) {
      if (!host().at_home(e, i)) continue;
      ++at_home;
      if (kept.size() < most && slot <= bytes) {
        bytes -= slot;
        kept.push_back(i);
      } else if (may_stream) {
        streams_[e].push_back(i);
      }
    }
    limited_ = limited_ || (may_stream && max_slots[e] < at_home);
    max_slots[e] = static_cast<uint32_t>(kept.size());
    keep(e, std::move(kept));
    return streams_[e].empty();
  }

  // Returns whether no unit computes from this memory, and the memories over it can keep all sites that every
  // step uses whole.
  bool has_room_above() const {
    const uint32_t own = host().own_memory().memory;
    uint64_t room = 0;
    for (uint32_t m = own + 1; m <= host().n_memories(); ++m) {
      if (host().memory(m).over == own) room += host().memory_bytes(m);
    }
    uint64_t whole = 0;
    for (const tierd::StepPart& part : step_.parts) {
      for (const uint32_t e : part.editions) {
        if (!tierd::used_in_part(host().site_of(e)))
          whole += uint64_t{host().edition(e).n} * host().edition(e).bytes;
      }
    }
    return host().own_memory().unit == TIERD_NO_UNIT && whole <= room;
  }

  bool is_streaming(size_t part) const {
    const std::vector<uint32_t>& editions = step_.parts[part].editions;
    return std::any_of(editions.begin(), editions.end(), [&](uint32_t e) { return !streams_[e].empty(); });
  }

  size_t part_of(uint32_t site) const {
    size_t part = 0;
    while (site >= step_.parts[part].end_site) ++part;
    return part;
  }

  uint32_t distance() const {
    if (distance_ != 0) return distance_;
    uint64_t largest = 1;
    for (const tierd::StepPart& part : step_.parts) {
      uint64_t bytes = 0;
      for (const uint32_t e : part.editions) bytes += uint64_t{host().edition(e).bytes} * streams_[e].size();
      largest = std::max(largest, bytes);
    }
    const uint64_t held = host().staging_bytes(host().own_memory().memory) / largest;
    return static_cast<uint32_t>(std::clamp<uint64_t>(held, kLeastDistance, step_.parts.size()));
  }

  void load(uint32_t e, uint32_t sites_ahead) {
    if (streams_[e].empty()) return;
    const std::vector<uint32_t>* neurons = &streams_[e];
    if (skip_held_) {
      const uint64_t above = ~uint64_t{0} << (host().own_memory().memory + 1);
      missing_.clear();
      for (const uint32_t neuron : streams_[e]) {
        if ((host().holders(e, neuron) & above) == 0) missing_.push_back(neuron);
      }
      neurons = &missing_;
    }
    const tierd::Host::Where here = {host().own_memory().memory, e};
    host().wish(here, host().edition(e).site, sites_ahead, neurons->data(),
                static_cast<uint32_t>(neurons->size()));
  }

  void forget() { std::fill(asked_.begin(), asked_.end(), uint64_t{0}); }

  const int64_t fixed_;
  const uint32_t distance_;
  const bool skip_held_;
  const tierd::StepParts step_;
  std::vector<std::vector<uint32_t>> streams_;  // [editions] neurons that do not stay and are loaded ahead
  bool limited_ = false;                        // at the last split there were fewer slots than neurons
  size_t present_ = kNone;                      // the part that the step is in
  uint64_t steps_ = 0;                          // steps that have ended since the start
  std::vector<uint64_t> asked_;                 // [parts] one past the last step for which it was requested
  std::vector<uint32_t> missing_;               // used by `load`
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(
    tierd::cache<Layers>(
        "layers", "1.0",
        "keeps the first layers; loads the next ones whole, ahead of their passes (M2Cache)"),
    kParams))
