// Hermes' predictor (section 4.2.1): four bits a neuron, which go up by 4 when it fires and down by 1 when it
// does not; and for each neuron two neurons of the network before that mostly fired with it (its parents). A
// neuron is predicted if
//
//   state + lambda * parents that have fired  >  threshold
//
// In a prompt it only counts; afterwards each state begins with the share of the prompt's tokens in which the
// neuron fired. As [heat] it reports how hot neurons are, which changes no result. As [predictor] it decides
// what is computed.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tierd/plugin.hpp"
#include "tierd/policy/silence.hpp"

namespace {

constexpr uint8_t kHottest = TIERD_HOTTEST;
constexpr uint32_t kParents = 2;
constexpr uint32_t kShort = UINT16_MAX;  // the most neurons that two bytes number, beside "no neuron"

constexpr tierd_param kParams[] = {
    tierd::lossy(tierd::integer("up", "4", 1, 15, "amount by which a state increases when its neuron fires")),
    tierd::lossy(tierd::integer("down", "1", 1, 15,
                                "amount by which a state decreases when its neuron does not fire")),
    tierd::lossy(tierd::integer("lambda", "6", 0, 15, "weight of each parent that has fired")),
    tierd::lossy(tierd::integer("threshold", "15", 0, 45, "value above which a neuron is predicted")),
    tierd::lossy(
        tierd::text("rule", "above", "above|reaches",
                    "above: the value must exceed the threshold, as in the paper, so that without parents no "
                    "state exceeds 15; reaches: a value equal to the threshold is enough")),
    tierd::lossy(tierd::text(
        "by", "both", "both|tokens|layers",
        "values that are used: both, states and parents; tokens, states alone; layers, parents alone")),
    tierd::lossy(tierd::text("first", "dense", "dense|predicted",
                             "neurons of the first site, which has no parents: dense, all are active; "
                             "predicted, by their states")),
    tierd::number("hottest_share", "0.9", 0.01, 1,
                  "share of a prompt's tokens above which a neuron's state starts at 15"),
    tierd::number("coldest_share", "0.02", 0, 0.99,
                  "share of a prompt's tokens below which a neuron's state starts at 0"),
};

constexpr const char* kManual =
    "Tables of parents: `tier profile --parents` writes SITE.parents, [2 x neurons] numbers of neurons of "
    "the site before it, negative where there is none. Set heat.tensors (predictor.tensors) = "
    "\"FILE.safetensors\". Without tables states alone are used. With predictor.name = \"state-table\" set "
    "scheduler.measure_every = 1, so that it learns from all neurons; otherwise a neuron that was not "
    "computed counts as not fired. The gauges accuracy and recall measure this table's rule, even if another "
    "plugin predicts.";

// Four bits for each neuron.
class States {
 public:
  explicit States(uint32_t n) : packed_((n + 1) / 2, 0) {}
  void set(uint32_t neuron, uint32_t state) {
    uint8_t& two = packed_[neuron / 2];
    two = static_cast<uint8_t>((two & ~(kHottest << shift(neuron))) | state << shift(neuron));
  }
  // Writes all states, [n].
  void unpack(uint8_t* states, uint32_t n) const {
    const uint8_t* const packed = packed_.data();
    for (uint32_t i = 0; i < n / 2; ++i) {
      states[2 * i] = packed[i] & kHottest;
      states[2 * i + 1] = packed[i] >> 4;
    }
    if (n % 2 != 0) states[n - 1] = packed_[n / 2] & kHottest;
  }
  uint64_t bytes() const { return packed_.size(); }
  bool any() const { return !packed_.empty(); }  // false: the site's firing is not known
  // Adds `up` to the states of neurons that fired, up to kHottest, and subtracts `down` from all others, down
  // to 0. This is done for all neurons of each pass: in bytes and without branches, so that the compiler
  // vectorizes it. fired: [n + 1], 0 or 1; the last one is 0.
  void step(const uint8_t* fired, uint8_t up, uint8_t down) {
    const auto next = [up, down](uint8_t state, uint8_t has_fired) {
      const auto hotter = static_cast<uint8_t>(std::min<uint8_t>(state + up, kHottest));
      const auto cooler = static_cast<uint8_t>(state - std::min(state, down));
      const auto mask = static_cast<uint8_t>(-has_fired);
      return static_cast<uint8_t>((hotter & mask) | (cooler & ~mask));
    };
    uint8_t* const packed = packed_.data();
    const size_t n = packed_.size();
    for (size_t i = 0; i < n; ++i) {
      const uint8_t low = next(packed[i] & kHottest, fired[2 * i]);
      const uint8_t high = next(packed[i] >> 4, fired[2 * i + 1]);
      packed[i] = static_cast<uint8_t>(low | high << 4);
    }
  }

 private:
  static uint32_t shift(uint32_t neuron) { return neuron % 2 * 4; }
  std::vector<uint8_t> packed_;
};

// kParents neurons of the site before, for each neuron; the number of neurons there stands for "no parent".
// Numbers have two bytes each if that is enough.
class Parents {
 public:
  explicit Parents(uint32_t n_before) : short_(n_before <= kShort) {}
  void add(uint32_t parent) {
    if (short_) {
      two_bytes_.push_back(static_cast<uint16_t>(parent));
    } else {
      four_bytes_.push_back(parent);
    }
  }
  // Writes, for each neuron, `lambda` times the number of its parents that fired. fired: [n_before + 1]; the
  // last one is 0.
  void count(const std::vector<uint8_t>& fired, uint32_t lambda, uint8_t* sums) const {
    short_ ? count(two_bytes_, fired, lambda, sums) : count(four_bytes_, fired, lambda, sums);
  }
  bool empty() const { return two_bytes_.empty() && four_bytes_.empty(); }
  uint64_t bytes() const {
    return two_bytes_.size() * sizeof(uint16_t) + four_bytes_.size() * sizeof(uint32_t);
  }

 private:
  template <class Number>
  static void count(const std::vector<Number>& parents, const std::vector<uint8_t>& fired, uint32_t lambda,
                    uint8_t* sums) {
    static_assert(kParents == 2);
    const size_t n = parents.size() / kParents;
    const Number* const parent = parents.data();
    const uint8_t* const has_fired = fired.data();
    for (size_t i = 0; i < n; ++i) {
      const uint32_t active = has_fired[parent[2 * i]] + uint32_t{has_fired[parent[2 * i + 1]]};
      sums[i] = static_cast<uint8_t>(lambda * active);
    }
  }

  bool short_;
  std::vector<uint16_t> two_bytes_;
  std::vector<uint32_t> four_bytes_;
};

struct Site {
  States states;
  Parents parents;                  // of the site before; empty: it has none
  uint32_t before = TIERD_NO_SITE;  // the site of the parents
  std::vector<uint8_t> fired;       // [n + 1] in its last pass; the last stands for "no neuron"
  // The present or last prompt.
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
    tierd::need_silent_neurons(host);
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
    if (told.prompt != 0) return count(told);
    if (site.tokens != 0) begin(site, n);
    mark(told);
    if (told.known == TIERD_KNOWN_ALL) compare(told.site);
    site.states.step(site.fired.data(), static_cast<uint8_t>(up_), static_cast<uint8_t>(down_));
  }

  void heat(uint32_t site, uint8_t* heat) {
    if (!sites_[site].states.any()) return (void)std::fill_n(heat, host_.site(site).n, uint8_t{0});
    if (sites_[site].tokens != 0) begin(sites_[site], host_.site(site).n);
    const uint32_t n = host_.site(site).n;
    strengths(site, heat);
    for (uint32_t i = 0; i < n; ++i) heat[i] = std::min(heat[i], kHottest);
  }

  // The host calls this for a predictor, not for a table that only keeps heat, where the threshold does not
  // matter.
  void fits() const {
    const auto tells = [](const Site& site) { return site.states.any(); };
    const auto has_parents = [](const Site& site) { return !site.parents.empty(); };
    const bool parents = std::any_of(sites_.begin(), sites_.end(), has_parents);
    const uint32_t most = (by_tokens_ ? kHottest : 0) + (parents ? kParents * lambda_ : 0);
    if (most >= threshold_ || std::none_of(sites_.begin(), sites_.end(), tells)) return;
    std::string why = "states" + std::string(parents ? " and parents" : ", without parents,") +
                      " add up to " + std::to_string(most) + " at most, but a neuron is predicted from " +
                      std::to_string(threshold_) + ", so that none would ever be; ";
    if (!parents && by_layers_)
      why +=
          "make tables of parents with tier profile -m MODEL TEXT -o parents.safetensors --parents and use "
          "them with --set predictor.tensors=parents.safetensors, or ";
    throw tierd::Failure(TIERD_E_UNSUPPORTED, why + "compute all neurons with --set predictor.name=dense");
  }

  void predict(uint32_t s, const tierd_rows_view& /*rows*/, tierd_set_out& out) {
    Site& site = sites_[s];
    out.all = !site.states.any() || (first_is_dense_ && s == first_) ? 1 : 0;
    if (out.all != 0) return;
    const uint32_t n = host_.site(s).n;
    if (site.tokens != 0) begin(site, n);
    strengths_.resize(n);
    strengths(s, strengths_.data());
    out.n = 0;
    for (uint32_t i = 0; i < n; ++i) {
      if (strengths_[i] >= threshold_) out.idx[out.n++] = i;
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
      // NaN is not less than anything.
      if (!(parent < static_cast<float>(host_.site(before).n)))
        throw tierd::Failure(TIERD_E_INVALID,
                             name + " has a number that is not a neuron of " + host_.site(before).name);
      site.parents.add(parent < 0 ? host_.site(before).n : static_cast<uint32_t>(parent));
    }
  }

  // Writes [n] the sum of each neuron's state and its parents' part.
  void strengths(uint32_t s, uint8_t* sums) {
    const Site& site = sites_[s];
    const uint32_t n = host_.site(s).n;
    if (by_tokens_) {
      site.states.unpack(sums, n);
    } else {
      std::fill_n(sums, n, uint8_t{0});
    }
    if (site.parents.empty() || sites_[site.before].fired.empty()) return;
    // The kernel asks for a site's heat twice in a token, and the parents' part is the same.
    if (of_parents_ != s) {
      by_parents_.resize(n);
      site.parents.count(sites_[site.before].fired, lambda_, by_parents_.data());
      of_parents_ = s;
    }
    const uint8_t* const by_parents = by_parents_.data();
    for (uint32_t i = 0; i < n; ++i) sums[i] = static_cast<uint8_t>(sums[i] + by_parents[i]);
  }

  void mark(const tierd_fired_view& told) {
    std::vector<uint8_t>& fired = sites_[told.site].fired;
    fired.assign(host_.site(told.site).n + 1, 0);
    for (uint32_t i = 0; i < told.n; ++i) fired[told.idx[i]] = 1;
    if (of_parents_ != TIERD_NO_SITE && sites_[of_parents_].before == told.site) of_parents_ = TIERD_NO_SITE;
  }

  void count(const tierd_fired_view& told) {
    Site& site = sites_[told.site];
    site.counts.resize(host_.site(told.site).n, 0);
    for (uint32_t i = 0; i < told.n; ++i) site.counts[told.idx[i]] += told.count[i];
    site.tokens += told.rows;
    mark(told);
  }

  // Sets the states after a prompt: 16 steps between the two shares.
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

  // Compares the table's prediction with the neurons that fired.
  void compare(uint32_t s) {
    const Site& site = sites_[s];
    const uint32_t n = host_.site(s).n;
    strengths_.resize(n);
    strengths(s, strengths_.data());
    uint32_t right = 0, found = 0, fired = 0;
    for (uint32_t i = 0; i < n; ++i) {
      const uint8_t predicted = strengths_[i] >= threshold_ ? 1 : 0;
      right += predicted == site.fired[i] ? 1 : 0;
      found += predicted & site.fired[i];
      fired += site.fired[i];
    }
    right_ += right, found_ += found, fired_ += fired;
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
  uint32_t first_ = TIERD_NO_SITE;  // of the sites whose firing is known
  std::vector<Site> sites_;
  uint32_t of_parents_ = TIERD_NO_SITE;  // the site for which by_parents_ [n] is up to date
  std::vector<uint8_t> by_parents_;
  std::vector<uint8_t> strengths_;                         // used by one call, kept for its memory
  uint64_t seen_ = 0, right_ = 0, fired_ = 0, found_ = 0;  // neurons of passes
};

}  // namespace

TIERD_PLUGIN(tierd::with_manual(
    tierd::with_params(tierd::predictor<StateTable>("state-table", "1.0",
                                                    "predicts by a state of four bits for each neuron, and "
                                                    "by the neurons that fired before it (Hermes)"),
                       kParams),
    kManual))
