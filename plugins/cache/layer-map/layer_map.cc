// Endor's offload map, which Hugging Face Accelerate calls a device map: the first layers stay in the
// uppermost memory, the next ones in the memory below it, the rest on flash. Layers stay whole, in the order
// of a step. A memory takes the first layers that no memory over it keeps, as many as its bytes hold, so each
// layer is kept once. A part outside the layers that a step uses whole (the head) is placed in its turn, like
// a layer. An embedding, of which a step uses one row for each token, gets the bytes that the layers leave:
// Accelerate places it first, which would cost a small memory a layer and save it a row. An embedding tied to
// the head is placed as the head.
//
// Everything else passes through staging. If a unit computes from the memory, whole layers are requested
// ahead of their pass, across the end of the step too, so that they fill a staging block while another one is
// computed.
//
// Each instance computes the map from the uppermost memory down to its own, by their bytes.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tierd/policy/fixed_set.hpp"
#include "tierd/policy/step_parts.hpp"

namespace {

constexpr uint32_t kAllLayers = std::numeric_limits<uint32_t>::max();
constexpr size_t kMostDigits = 5;

constexpr tierd_param kParams[] = {
    tierd::text("layers", "", nullptr,
                "maximum number of layers that each memory of a tier keeps, as in \"gpu=6, dram=10\"; 0: "
                "none; a tier that is not named keeps as many as fit"),
    tierd::integer(
        "layers_ahead", "1", 0, 255,
        "number of following layers that are prefetched whole; 0: the predictor chooses what is prefetched"),
};

[[noreturn]] void refuse(const std::string& part, const std::string& why) {
  throw tierd::Failure(TIERD_E_UNSUPPORTED, "layers: '" + part.substr(0, 40) + "' " + why);
}

// Reads one part of "gpu=6, dram=10" into `most` [memories].
void read_part(const tierd::Host& host, const std::string& part, std::vector<uint32_t>& most) {
  const size_t equals = std::min(part.find('='), part.size());
  const std::string tier = part.substr(0, equals);
  const std::string number = equals == part.size() ? "" : part.substr(equals + 1);
  const bool digits = number.find_first_not_of("0123456789") == std::string::npos;
  if (tier.empty() || number.empty() || number.size() > kMostDigits || !digits)
    refuse(part, "is not a number of layers of a tier; expected one such as gpu=6");
  bool known = false;
  for (uint32_t m = 1; m <= host.n_memories(); ++m) {
    if (host.memory(m).tier != tier) continue;
    most[m - 1] = static_cast<uint32_t>(std::stoul(number));
    known = true;
  }
  if (!known) refuse(tier, "is not a tier with a memory; expected a NAME of [tiers.NAME]");
}

// Returns [memories] the most layers that may stay there.
std::vector<uint32_t> read_layers(const tierd::Host& host) {
  std::vector<uint32_t> most(host.n_memories(), kAllLayers);
  std::string text = host.text("layers");
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    read_part(host, text.substr(begin, end - begin), most);
    begin = end + 1;
  }
  return most;
}

class LayerMap : public tierd::FixedSet {
 public:
  explicit LayerMap(const tierd::Host& host)
      : FixedSet(host),
        most_layers_(read_layers(host)),
        layers_ahead_(static_cast<uint32_t>(host.integer("layers_ahead"))),
        step_(tierd::step_parts(host)) {}

  void share(uint64_t bytes, uint32_t* max_slots) {
    const uint32_t own = host().own_memory().memory;
    const uint32_t n = host().n_editions();
    std::vector<std::vector<uint8_t>> placed;  // [editions][neurons] whether
    std::vector<uint32_t> all;
    for (uint32_t e = 0; e < n; ++e) {
      all.push_back(host().edition(e).n);
      placed.emplace_back(all[e], uint8_t{0});
    }
    for (uint32_t m = host().n_memories(); m > own; --m) {  // a memory lies over one with a lesser number
      if (lies_over(m, own)) (void)place(m, host().memory_bytes(m), all, placed);
    }
    const std::vector<uint32_t> most(max_slots, max_slots + n);
    std::vector<std::vector<uint32_t>> kept = place(own, bytes, most, placed);
    limited_ = false;
    for (uint32_t e = 0; e < n; ++e) {
      max_slots[e] = static_cast<uint32_t>(kept[e].size());
      limited_ = limited_ || most[e] < at_home(own, e);
      keep(e, std::move(kept[e]));
    }
  }

  void resize(uint64_t bytes, uint32_t* max_slots, tierd_victims_out& victims) {
    share(bytes, max_slots);
    limited_ = false;
    name_surplus(max_slots, victims);
  }

  // A cache that replaces another has that one's slots at first, which may hold a part of every layer.
  void resplit(uint32_t* wanted) { *wanted = limited_ ? 1 : 0; }

  void ahead(uint32_t site) {
    // Layers are fetched into a memory without a unit when the memory over it wishes for them.
    if (layers_ahead_ == 0 || host().own_memory().unit == TIERD_NO_UNIT) return;
    uint16_t layer = host().site(site).layer;
    uint32_t layers = 0;
    for (uint32_t distance = 1; distance < host().n_sites(); ++distance) {
      const tierd_site_view& later = host().site((site + distance) % host().n_sites());
      const bool begins = later.layer != layer && later.layer != TIERD_NO_LAYER;
      if (begins && ++layers > layers_ahead_) return;
      layer = later.layer;
      if (later.given == 0) host().wish(later.site, distance);
    }
  }

 private:
  // Returns whether memory m lies over `below`, also indirectly, or is that memory.
  bool lies_over(uint32_t m, uint32_t below) const {
    while (m > below) m = host().memory(m).over;
    return m == below;
  }
  bool is_at_home(uint32_t m, uint32_t e, uint32_t neuron) const {
    return lies_over(host().unit(host().home(e, neuron)).memory, m);
  }
  uint32_t at_home(uint32_t m, uint32_t e) const {
    uint32_t n = 0;
    for (uint32_t i = 0; i < host().edition(e).n; ++i) n += is_at_home(m, e, i) ? 1 : 0;
    return n;
  }

  // Returns at most `most` neurons of an edition that may be placed in memory m.
  std::vector<uint32_t> candidates(uint32_t m, uint32_t e, uint64_t most,
                                   const std::vector<std::vector<uint8_t>>& placed) const {
    std::vector<uint32_t> neurons;
    for (uint32_t i = 0; i < host().edition(e).n && neurons.size() < most; ++i) {
      if (placed[e][i] == 0 && is_at_home(m, e, i)) neurons.push_back(i);
    }
    return neurons;
  }

  // Returns the neurons that stay in memory m, which has `room` bytes, and slots for `most` neurons of each
  // edition.
  std::vector<std::vector<uint32_t>> place(uint32_t m, uint64_t room, const std::vector<uint32_t>& most,
                                           std::vector<std::vector<uint8_t>>& placed) const {
    std::vector<std::vector<uint32_t>> kept(most.size());
    const auto slot_bytes = [&](uint32_t e) -> uint64_t { return host().edition(host().held(m, e)).bytes; };
    const auto take = [&](uint32_t e, std::vector<uint32_t> neurons) {
      room -= neurons.size() * slot_bytes(e);
      for (const uint32_t neuron : neurons) placed[e][neuron] = 1;
      kept[e] = std::move(neurons);
    };
    uint32_t layers = 0;
    std::vector<std::vector<uint32_t>> whole;
    for (const tierd::StepPart& part : step_.parts) {
      whole.clear();
      uint64_t bytes = 0;
      for (const uint32_t e : part.editions) {
        whole.push_back(candidates(m, e, most[e], placed));
        bytes += whole.back().size() * slot_bytes(e);
      }
      if (bytes == 0) continue;  // kept above
      if (bytes > room || most_layers_[m - 1] == (part.is_layer ? layers : 0)) break;
      layers += part.is_layer ? 1 : 0;
      for (size_t i = 0; i < whole.size(); ++i) take(part.editions[i], std::move(whole[i]));
    }
    for (const uint32_t e : step_.embeddings) {
      if (most_layers_[m - 1] == 0) break;
      take(e, candidates(m, e, std::min<uint64_t>(most[e], room / slot_bytes(e)), placed));
    }
    host().metric((std::string("layers.") + host().memory(m).tier).c_str(), layers);
    return kept;
  }

  std::vector<uint32_t> most_layers_;  // [memories]
  uint32_t layers_ahead_;
  tierd::StepParts step_;
  bool limited_ = false;  // at the last split there were fewer slots than neurons
};

}  // namespace

TIERD_PLUGIN(tierd::with_params(
    tierd::cache<LayerMap>(
        "layer-map", "1.0",
        "keeps whole layers, the first ones in the uppermost memory, and streams the rest (Endor)"),
    kParams))
