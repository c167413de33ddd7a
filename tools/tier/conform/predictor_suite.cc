// Checks predictors: answers are sets, wishes name neurons, and no neuron is left out unless declared.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/base/row_mask.h"
#include "core/kernel/active_set.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"
#include "tools/tier/conform/simulated_core.h"
#include "tools/tier/conform/suites.h"

namespace tierd {
namespace {

using Predictor = Subject<tierd_predictor_1>;

constexpr const char* kSets = "predict: neurons of the site, ascending, or all";
constexpr const char* kDeclared = "a predictor that leaves neurons out declares itself lossy";
constexpr const char* kLookAhead =
    "look_ahead: wishes lie as many sites ahead as they say, within the room given";
constexpr const char* kScores = "predict: a finite score for each neuron, where they are wanted and given";
constexpr const char* kHeat = "heat: from 0 to 15 for each neuron of the site";
constexpr const char* kCaps = "caps: known ones, the same for all instances, lossy as the descriptor says";

class PredictorTrace {
 public:
  PredictorTrace(const StrategyChoice& choice, const SiteTable& sites, uint64_t seed,
                 const SuiteOptions& options, Report& report)
      : choice_(choice),
        sites_(sites),
        world_(sites, seed, naive_linear),
        random_(seed),
        options_(options),
        report_(report) {}

  bool begin() {
    predictor_ = Predictor::make(choice_, world_, options_, report_);
    if (predictor_ == nullptr) return false;
    const uint32_t caps = predictor_->strategy.table.caps(predictor_->strategy.self);
    lossy_ = (caps & TIERD_PREDICTOR_LOSSY) != 0;
    reads_x_ = (caps & TIERD_PREDICTOR_NEEDS_X) != 0;
    constexpr uint32_t kKnown = TIERD_PREDICTOR_NEEDS_X | TIERD_PREDICTOR_NEEDS_TRUTH |
                                TIERD_PREDICTOR_NEEDS_ALL_TRUTH | TIERD_PREDICTOR_LOSSY |
                                TIERD_PREDICTOR_SCORES | TIERD_PREDICTOR_ROWS_APART;
    scores_ = (caps & TIERD_PREDICTOR_SCORES) != 0;
    report_.check(kCaps, (caps & ~kKnown) == 0 && lossy_ == (choice_.plugin->lossy != 0), [&] {
      return fmt::format("caps {:#x}, lossy {} in the descriptor", caps, choice_.plugin->lossy);
    });
    keeps_heat_ = offers_heat(*choice_.plugin);
    if (keeps_heat_) {
      const Status read = read_table(*choice_.plugin, choice_.origin, heat_.table);
      report_.check(kHeat, read.ok(), [&] { return read.error().line(); });
      if (!read.ok()) return false;
      static_cast<StrategyBase&>(heat_) = predictor_->strategy;
    }
    // This sequence began before the instance was made.
    if (random_.below(2) == 0) sequences_.push_back(random_.below(64));
    return true;
  }

  void step() {
    if (random_.below(3) == 0) begin_sequence();
    std::vector<uint64_t> rows_of = sequences_;
    if (rows_of.empty()) rows_of.push_back(0);
    for (SiteId site = 0; site < sites_.size() && well_; ++site) {
      if (sites_[site].given()) continue;
      tierd_rows_view rows{};
      rows.size = sizeof rows;
      rows.rows = static_cast<uint32_t>(rows_of.size());
      rows.seq = rows_of.data();
      const std::vector<float> x = draw_x(site, rows.rows);
      rows.dim = x.empty() ? 0 : sites_[site].n_in;
      rows.x = x.empty() ? nullptr : x.data();
      predict(site, rows);
      if (well_) look_ahead(site, rows);
      if (well_ && keeps_heat_) tell(site, rows.rows);
    }
    if (!sequences_.empty() && random_.below(3) == 0) end_sequence();
  }

  void end() {
    while (!sequences_.empty() && well_) end_sequence();
  }

  bool well() const { return well_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }

 private:
  void answered(const Status& status) { well_ = well_ && check_answered(status, report_); }

  void begin_sequence() {
    // A number may be reused once its sequence has ended.
    const uint64_t sequence = random_.below(64);
    if (std::find(sequences_.begin(), sequences_.end(), sequence) != sequences_.end()) return;
    sequences_.push_back(sequence);
    answered(predictor_->strategy.call_if(&tierd_predictor_1::begin_sequence, "begin_sequence", sequence));
  }
  void end_sequence() {
    const size_t which = random_.below(static_cast<uint32_t>(sequences_.size()));
    answered(
        predictor_->strategy.call_if(&tierd_predictor_1::end_sequence, "end_sequence", sequences_[which]));
    sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  // The vector has exactly the declared size, so that AddressSanitizer finds reads beyond it. Empty if the
  // predictor does not read activations.
  std::vector<float> draw_x(SiteId site, uint32_t rows) {
    const auto wants = predictor_->strategy.table.reads_x;
    if (!reads_x_ || (wants != nullptr && wants(predictor_->strategy.self, site) == 0)) return {};
    std::vector<float> x(uint64_t{rows} * sites_[site].n_in);
    for (float& value : x) value = static_cast<float>(random_.below(2001)) / 1000 - 1;
    return x;
  }

  void predict(SiteId site, const tierd_rows_view& rows) {
    const uint32_t n = sites_[site].n;
    Guarded<uint32_t> neurons(n);
    const uint32_t words = rows.rows > 1 ? mask_words(rows.rows) : 0;
    Guarded<uint64_t> row_masks(uint64_t{n} * words);
    std::fill_n(row_masks.data(), uint64_t{n} * words, ~uint64_t{0});
    tierd_set_out out{};
    out.size = sizeof out;
    out.cap = n;
    out.idx = neurons.data();
    out.row_mask = words != 0 ? row_masks.data() : nullptr;
    Guarded<float> scores(n);
    std::fill_n(scores.data(), n, std::numeric_limits<float>::quiet_NaN());
    const bool wanted = scores_ && random_.below(2) == 0;
    if (wanted) out.score = scores.data();
    answered(predictor_->strategy.call(&tierd_predictor_1::predict, "predict", site, &rows, &out));
    if (!well_) return;
    report_.check(kWithin, neurons.intact() && row_masks.intact() && scores.intact(),
                  [] { return "predict wrote beyond the site"; });
    const bool counted = out.all <= 1 && (out.all == 1 || out.n <= n);
    report_.check(kSets, counted,
                  [&] { return fmt::format("{} of {} neurons, all = {}", out.n, n, out.all); });
    well_ = counted;
    if (!well_) return;
    const uint32_t count = out.all == 1 ? 0 : out.n;
    check_list(kSets, neurons.data(), count, n, report_);
    report_.check(kDeclared, lossy_ || out.all == 1 || out.n == n,
                  [&] { return fmt::format("{} of {} neurons of site {}", out.n, n, site); });
    fingerprint_.add(uint64_t{out.all} << 32 | count);
    report_.check(kScores, out.scored == 0 || wanted, [] { return "scores that nobody wanted"; });
    for (uint32_t i = 0; i < (out.all == 1 ? n : count) && wanted && out.scored != 0; ++i) {
      report_.check(kScores, std::isfinite(scores[i]), [&] { return fmt::format("{}", scores[i]); });
      fingerprint_.add(std::bit_cast<uint32_t>(scores[i]));
    }
    for (uint32_t i = 0; i < count; ++i) fingerprint_.add(neurons[i]);
    for (uint64_t i = 0; i < uint64_t{count} * words; ++i) fingerprint_.add(row_masks[i]);

    const ActiveSet set = out.all == 1
                              ? ActiveSet::all(n)
                              : ActiveSet::of(std::vector<uint32_t>(neurons.data(), neurons.data() + count));
    const tierd_set_view predicted = set_view(site, set, rows.rows, TIERD_SET_PREDICTED);
    tierd_set_view truth = set_view(site, set, rows.rows, TIERD_SET_TRUE);
    truth.known = static_cast<uint8_t>(random_.below(3));
    answered(predictor_->strategy.call_if(&tierd_predictor_1::observe, "observe", &predicted, &truth));
  }

  // Reports fired neurons, in a prompt or not, and checks the heat after it.
  void tell(SiteId site, uint32_t rows) {
    const uint32_t n = sites_[site].n;
    const std::vector<uint32_t> neurons = draw_set(n, random_);
    std::vector<uint32_t> counts(neurons.size());
    for (uint32_t& count : counts) count = 1 + random_.below(rows);
    tierd_fired_view fired{};
    fired.size = sizeof fired;
    fired.site = site;
    fired.rows = rows;
    fired.n = static_cast<uint32_t>(neurons.size());
    fired.known = random_.below(2) == 0 ? TIERD_KNOWN_ALL : TIERD_KNOWN_COMPUTED;
    fired.prompt = random_.below(4) == 0 ? 1 : 0;
    fired.idx = neurons.data();
    fired.count = counts.data();
    answered(heat_.call(&tierd_heat_1::fired, "fired", &fired));
    if (!well_) return;
    Guarded<uint8_t> heat(n);
    answered(heat_.call(&tierd_heat_1::heat, "heat", site, heat.data()));
    if (!well_) return;
    report_.check(kWithin, heat.intact(), [] { return "heat wrote beyond the site"; });
    for (uint32_t i = 0; i < n; ++i) {
      report_.check(kHeat, heat[i] <= TIERD_HOTTEST,
                    [&] { return fmt::format("{} at place {}", heat[i], i); });
      fingerprint_.add(heat[i]);
    }
  }

  void look_ahead(SiteId site, const tierd_rows_view& rows) {
    if (predictor_->strategy.table.look_ahead == nullptr) return;
    answered(predictor_->strategy.call_for_wishes(&tierd_predictor_1::look_ahead, "look_ahead", site, &rows));
    if (!well_) return;
    const WishList& wishes = *predictor_->strategy.wishes;
    const Status sound = check_wishes(wishes, site, sites_, Topology::over_store(1));
    report_.check(kLookAhead, sound.ok(), [&] { return sound.error().detail; });
    for (const WishList::Wish& wish : wishes.all())
      fingerprint_.add(uint64_t{wish.site} << 32 | wish.distance);
  }

  const StrategyChoice& choice_;
  const SiteTable& sites_;
  PluginWorld world_;
  Random random_;
  const SuiteOptions& options_;
  Report& report_;
  std::unique_ptr<Predictor> predictor_;
  std::vector<uint64_t> sequences_;
  Fingerprint fingerprint_;
  Strategy<tierd_heat_1> heat_;
  bool keeps_heat_ = false;
  bool lossy_ = false;
  bool reads_x_ = false;
  bool scores_ = false;
  bool well_ = true;
};

}  // namespace

void check_predictor(const StrategyChoice& choice, const SuiteOptions& options, Report& report) {
  play_side_by_side<PredictorTrace>(choice, options, report);
}

}  // namespace tierd
