// Hermes' predictor (section 4.2.1): four bits a neuron, which go up by 4 when it fires and down by 1 when it
// does not, and two neurons of the network before for each neuron, which have mostly fired with it (its
// parents). A neuron is predicted where
//
//   state + lambda * parents that have fired  >  threshold
//
// In a prompt it only counts; afterwards each state begins with the share of the prompt's tokens in which the
// neuron has fired. As [heat] it says how hot neurons are, which changes no result. As [predictor] it decides
// what is computed.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tierd/plugin.hpp"

namespace {

constexpr uint32_t kHottest = TIERD_HOTTEST;
constexpr uint32_t kNobody = UINT32_MAX;
constexpr uint32_t kParents = 2;
constexpr uint32_t kShort = UINT16_MAX;  // neurons that two bytes number, one number of them for nobody

constexpr tierd_param kParams[] = {
    tierd::lossy(tierd::integer("up", "4", 1, 15, "what a state gains when its neuron fires")),
    tierd::lossy(tierd::integer("down", "1", 1, 15, "what it loses when not")),
    tierd::lossy(tierd::integer("lambda", "6", 0, 15, "what each parent that has fired counts")),
    tierd::lossy(tierd::integer("threshold", "15", 0, 45, "what a predicted neuron lies above")),
    tierd::lossy(tierd::text(
        "rule", "above", "above|reaches",
        "above: as the paper prints it, so that without parents that have fired no state is enough "
        "for a threshold of 15; reaches: the threshold itself is enough")),
    tierd::lossy(tierd::text("by", "both", "both|tokens|layers",
                             "what it goes by: states and parents, states alone, parents alone")),
    tierd::lossy(tierd::text(
        "first", "dense", "dense|predicted",
        "the first site, before which nothing fires: all of its neurons are active, or as the states say")),
    tierd::number("hottest_share", "0.9", 0.01, 1,
                  "in a prompt, above this share of its tokens a state begins with 15"),
    tierd::number("coldest_share", "0.02", 0, 0.99, "and below this one with 0"),
};

constexpr const char* kManual =
    "Parents come from tables: tier-profile --parents writes SITE.parents, [2 x neurons] numbers of neurons "
    "of the site "
    "before "
    "it, negative where there is none; then heat.tensors (predictor.tensors) = \"FILE.safetensors\". Without "
    "them states "
    "alone "
    "count. With predictor.name = \"state-table\" set scheduler.measure_every = 1 to learn from all that "
    "would have fired, "
    "else what was not computed counts as not fired. The gauges accuracy and recall are about its own rule, "
    "whoever "
    "predicts.";

// Four bits for each neuron.
class States {
 public:
  explicit States(uint32_t n) : packed_((n + 1) / 2, 0) {}
  uint32_t get(uint32_t neuron) const { return packed_[neuron / 2] >> shift(neuron) & kHottest; }
  void set(uint32_t neuron, uint32_t state) {
    uint8_t& two = packed_[neuron / 2];
    two = static_cast<uint8_t>((two & ~(kHottest << shift(neuron))) | state << shift(neuron));
  }
  uint64_t bytes() const { return packed_.size(); }
  bool any() const { return !packed_.empty(); }  // else the site cannot tell what fires
  // Takes `down` from each, to 0 at least: two at a time, since most of a network does not fire.
  void cool(uint32_t down) {
    const auto low = static_cast<uint8_t>(down), high = static_cast<uint8_t>(down << 4);
    for (uint8_t& two : packed_) {
      const auto a = static_cast<uint8_t>(two & 0x0f), b = static_cast<uint8_t>(two & 0xf0);
      two = static_cast<uint8_t>((a - std::min(a, low)) | (b - std::min(b, high)));
    }
  }

 private:
  static uint32_t shift(uint32_t neuron) { return neuron % 2 * 4; }
  std::vector<uint8_t> packed_;
};

// Neurons of the site before, kParents for each neuron, or kNobody: in two bytes each where these can number
// them.
class Parents {
 public:
  explicit Parents(uint32_t n_before) : short_(n_before <= kShort) {}
  void add(uint32_t parent) {
    if (short_) {
      two_bytes_.push_back(static_cast<uint16_t>(std::min(parent, kShort)));
    } else {
      four_bytes_.push_back(parent);
    }
  }
  uint32_t operator[](size_t i) const {
    if (!short_) return four_bytes_[i];
    return two_bytes_[i] == kShort ? kNobody : two_bytes_[i];
  }
  bool empty() const { return two_bytes_.empty() && four_bytes_.empty(); }
  uint64_t bytes() const {
    return two_bytes_.size() * sizeof(uint16_t) + four_bytes_.size() * sizeof(uint32_t);
  }

 private:
  bool short_;
  std::vector<uint16_t> two_bytes_;
  std::vector<uint32_t> four_bytes_;
};

struct Site {
  States states;
  Parents parents;                  // of the site before; empty: it has none
  uint32_t before = TIERD_NO_SITE;  // whose neurons they are
  std::vector<uint8_t> fired;       // [n] in its last pass
  // In the prompt that passes now, or has just passed.
  std::vector<uint32_t> counts;  // [n] tokens
  uint32_t tokens = 0;
};

class StateTable {
 public:
  static constexpr uint32_t kCaps = TIERD_PREDICTOR_LOSSY;

  explicit StateTable(const tierd::Host& host)
      : host_(host),
        up_(number("up")),
        down_(number("down")),
        lambda_(number("lambda")),
        threshold_(number("threshold") + (std::string_view(host.text("rule")) == "above" ? 1 : 0)),
        first_is_dense_(std::string_view(host.text("first")) == "dense"),
        hottest_share_(host.number("hottest_share")),
        coldest_share_(host.number("coldest_share")) {
    const std::string_view by = host.text("by");
    by_tokens_ = by != "layers";
    by_layers_ = by != "tokens";
    uint32_t before = TIERD_NO_SITE;
    uint64_t bytes = 0, of_parents = 0;
    for (uint32_t s = 0; s < host.n_sites(); ++s) {
      const tierd_site_view& site = host.site(s);
      const bool can_tell = site.axis == TIERD_AXIS_NEURON || site.axis == TIERD_AXIS_CHANNEL;
      const uint32_t n_before = before == TIERD_NO_SITE ? 0 : host.site(before).n;
      sites_.push_back({States(can_tell ? site.n : 0), Parents(n_before), TIERD_NO_SITE, {}, {}, 0});
      if (!can_tell) continue;
      if (before == TIERD_NO_SITE) first_ = s;
      if (by_layers_ && before != TIERD_NO_SITE) read_parents(site, before);
      bytes += sites_.back().states.bytes();
      of_parents += sites_.back().parents.bytes();
      before = s;
    }
    host.metric("state bytes", static_cast<double>(bytes));
    host.metric("parents bytes", static_cast<double>(of_parents));
  }

  void fired(const tierd_fired_view& told) {
    Site& site = sites_[told.site];
    const uint32_t n = host_.site(told.site).n;
    if (!site.states.any()) return;
    if (told.prompt != 0) return count(site, n, told);
    if (site.tokens != 0) begin(site, n);
    mark(site, n, told);
    if (told.known == TIERD_KNOWN_ALL) compare(site, n);
    hotter_.clear();
    for (uint32_t i = 0; i < told.n; ++i)
      hotter_.push_back(static_cast<uint8_t>(std::min(site.states.get(told.idx[i]) + up_, kHottest)));
    site.states.cool(down_);
    for (uint32_t i = 0; i < told.n; ++i) site.states.set(told.idx[i], hotter_[i]);
  }

  void heat(uint32_t site, uint8_t* heat) {
    if (!sites_[site].states.any()) return (void)std::fill_n(heat, host_.site(site).n, uint8_t{0});
    if (sites_[site].tokens != 0) begin(sites_[site], host_.site(site).n);
    for (uint32_t i = 0; i < host_.site(site).n; ++i)
      heat[i] = static_cast<uint8_t>(std::min(strength(sites_[site], i), kHottest));
  }

  void predict(uint32_t s, const tierd_rows_view& /*rows*/, tierd_set_out& out) {
    Site& site = sites_[s];
    out.all = !site.states.any() || (first_is_dense_ && s == first_) ? 1 : 0;
    if (out.all != 0) return;
    if (site.tokens != 0) begin(site, host_.site(s).n);
    out.n = 0;
    for (uint32_t i = 0; i < host_.site(s).n; ++i) {
      if (strength(site, i) >= threshold_) out.idx[out.n++] = i;
    }
  }

 private:
  uint32_t number(const char* name) const { return static_cast<uint32_t>(host_.integer(name)); }

  void read_parents(const tierd_site_view& view, uint32_t before) {
    const std::string name = std::string(view.name) + ".parents";
    if (!host_.has_tensor(name.c_str())) return;
    const tierd_tensor_view parents = host_.tensor(name.c_str());
    if (parents.n_dims != 1 || parents.dims[0] != uint64_t{kParents} * view.n)
      throw tierd::Failure(TIERD_E_INVALID,
                           name + " should be " + std::to_string(kParents * view.n) + " numbers");
    Site& site = sites_.back();
    site.before = before;
    for (uint64_t i = 0; i < parents.dims[0]; ++i) {
      const float parent = parents.data[i];
      // What is no number is not less than 0 either.
      if (!(parent < static_cast<float>(host_.site(before).n)))
        throw tierd::Failure(TIERD_E_INVALID, name + " names no neuron of " + host_.site(before).name);
      site.parents.add(parent < 0 ? kNobody : static_cast<uint32_t>(parent));
    }
  }

  // What a neuron's state and its parents come to.
  uint32_t strength(const Site& site, uint32_t neuron) const {
    uint32_t sum = by_tokens_ ? site.states.get(neuron) : 0;
    if (site.parents.empty() || sites_[site.before].fired.empty()) return sum;
    for (uint32_t k = 0; k < kParents; ++k) {
      const uint32_t parent = site.parents[kParents * neuron + k];
      if (parent != kNobody && sites_[site.before].fired[parent] != 0) sum += lambda_;
    }
    return sum;
  }

  static void mark(Site& site, uint32_t n, const tierd_fired_view& told) {
    site.fired.assign(n, 0);
    for (uint32_t i = 0; i < told.n; ++i) site.fired[told.idx[i]] = 1;
  }

  static void count(Site& site, uint32_t n, const tierd_fired_view& told) {
    site.counts.resize(n, 0);
    for (uint32_t i = 0; i < told.n; ++i) site.counts[told.idx[i]] += told.count[i];
    site.tokens += told.rows;
    mark(site, n, told);
  }

  // After a prompt: 16 steps between the two shares.
  void begin(Site& site, uint32_t n) {
    const double range = hottest_share_ - coldest_share_;
    for (uint32_t i = 0; i < n; ++i) {
      const double share = static_cast<double>(site.counts[i]) / site.tokens;
      const double step = range > 0 ? (share - coldest_share_) / range * (kHottest - 1) + 1 : 0;
      site.states.set(i, share >= hottest_share_  ? kHottest
                         : share < coldest_share_ ? 0
                                                  : static_cast<uint32_t>(step));
    }
    site.counts.assign(n, 0);
    site.tokens = 0;
  }

  // What it would have predicted, beside what has fired.
  void compare(const Site& site, uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      const bool predicted = strength(site, i) >= threshold_;
      right_ += predicted == (site.fired[i] != 0) ? 1 : 0;
      found_ += predicted && site.fired[i] != 0 ? 1 : 0;
      fired_ += site.fired[i];
    }
    seen_ += n;
    host_.metric("accuracy", static_cast<double>(right_) / static_cast<double>(seen_));
    if (fired_ != 0) host_.metric("recall", static_cast<double>(found_) / static_cast<double>(fired_));
  }

  tierd::Host host_;
  const uint32_t up_, down_, lambda_;
  const uint32_t threshold_;  // the least strength of a predicted neuron
  const bool first_is_dense_;
  const double hottest_share_, coldest_share_;
  bool by_tokens_ = true, by_layers_ = true;
  uint32_t first_ = TIERD_NO_SITE;  // of those that can tell
  std::vector<Site> sites_;
  std::vector<uint8_t> hotter_;                            // states of those that fire, kept for its memory
  uint64_t seen_ = 0, right_ = 0, fired_ = 0, found_ = 0;  // neurons of passes
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(tierd::predictor<StateTable>("state-table", "1.0",
                                                    "four bits a neuron, and what fired before it (Hermes)"),
                       kParams),
    kManual))
