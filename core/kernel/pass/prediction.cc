#include "core/kernel/pass/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.h"
#include "core/base/row_mask.h"
#include "core/kernel/pass/row_masks.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/set_view.h"

namespace tierd {
Prediction::Prediction(const Dispatcher& dispatcher, const SiteTable& sites, Strategies& strategies,
                       const Topology& topology, Recording* recording)
    : dispatcher_(dispatcher),
      sites_(sites),
      strategies_(strategies),
      topology_(topology),
      recording_(recording) {}

Result<ActiveSet> Prediction::active(SiteId site, const Pass& pass) {
  if (sites_[site].given()) {
    TIERD_CHECK(pass.given != nullptr);
    return *pass.given;
  }
  if (recording_ != nullptr && looks_at_input(site) && recording_->input(site, pass).empty())
    return recording_->predicted(site, pass);
  if (sites_[site].chosen()) return chosen(site, pass);
  return predicted(site, pass);
}

// Returns [rows][stride] values in the activations of a unit.
const float* Prediction::lines(const Pass& pass, UnitId unit, const ActivationPlace& place) const {
  return dispatcher_.values(topology_.units[unit].agent, place.offset, uint64_t{pass.rows} * place.stride);
}

const float* Prediction::input_of(SiteId s, const Pass& pass) {
  const Site& site = sites_[s];
  TIERD_CHECK(site.input.there());
  const UnitId holder = site.flow.holder();
  if (holder != kNoUnit && (site.input.stride == site.n_in || pass.rows == 1))
    return lines(pass, holder, site.input);
  x_.resize(uint64_t{pass.rows} * site.n_in);
  for (const UnitColumns& part : site.flow.input) {
    const float* const x = lines(pass, part.unit, site.input);
    const uint32_t count = std::min(part.count, site.n_in - part.first);
    for (uint32_t r = 0; r < pass.rows; ++r) {
      std::copy_n(x + uint64_t{r} * site.input.stride + part.first, count,
                  x_.begin() + uint64_t{r} * site.n_in + part.first);
    }
  }
  return x_.data();
}

// Returns the rows as a view for the predictor.
tierd_rows_view Prediction::rows_of(SiteId site, const Pass& pass) {
  tierd_rows_view rows{};
  rows.size = sizeof rows;
  rows.rows = pass.rows;
  rows.seq = pass.sequences.data();
  if (!reads_x(site)) return rows;
  rows.x = recording_ == nullptr ? input_of(site, pass) : recording_->input(site, pass).data();
  if (rows.x != nullptr) rows.dim = sites_[site].n_in;
  return rows;
}

// Returns the neurons that the segment before has chosen, with their row masks.
ActiveSet Prediction::chosen(SiteId s, const Pass& pass) {
  const Site& site = sites_[s];
  TIERD_CHECK(site.choice.there());
  const uint32_t words = mask_words(pass.rows);
  const float* choice = lines(pass, site.flow.holder(), site.choice);
  row_masks_.assign(uint64_t{site.n} * words, 0);
  scores_.assign(site.n, std::numeric_limits<float>::lowest());
  for (uint32_t r = 0; r < pass.rows; ++r) {
    for (uint32_t i = 0; i < site.n; ++i) {
      const float weight = choice[uint64_t{r} * site.choice.stride + i];
      if (weight == 0) continue;
      row_masks_[uint64_t{i} * words + r / 64] |= uint64_t{1} << r % 64;
      scores_[i] = std::max(scores_[i], weight);
    }
  }
  std::vector<uint32_t> neurons;
  std::vector<uint64_t> masks;
  std::vector<float> scores;
  for (uint32_t i = 0; i < site.n; ++i) {
    const std::span<const uint64_t> mask(&row_masks_[uint64_t{i} * words], words);
    if (std::ranges::all_of(mask, [](uint64_t word) { return word == 0; })) continue;
    neurons.push_back(i);
    if (is_scored(s)) scores.push_back(scores_[i]);
    masks.insert(masks.end(), mask.begin(), mask.end());
  }
  if (pass.rows == 1) masks.clear();
  return ActiveSet::of(std::move(neurons), std::move(masks), std::move(scores));
}

// Calls the predictor, and reports the duration to the observer.
template <class Ask>
Status Prediction::timed(SiteId site, const char* what, Ask ask) {
  if (observer() == nullptr) return ask();
  const uint64_t begin = dispatcher_.now_ns();
  Status answer = ask();
  observer()->predictor_asked(site, what, begin, dispatcher_.now_ns());
  return answer;
}

Result<ActiveSet> Prediction::predicted(SiteId s, const Pass& pass) {
  const Site& site = sites_[s];
  auto& predictor = strategies_.predictor;
  neurons_.resize(site.n);
  const tierd_rows_view rows = rows_of(s, pass);
  tierd_set_out out{};
  out.size = sizeof out;
  out.cap = site.n;
  out.idx = neurons_.data();
  if (pass.rows > 1) {
    row_masks_.assign(uint64_t{site.n} * mask_words(pass.rows), ~uint64_t{0});
    out.row_mask = row_masks_.data();
  }
  scores_.resize(is_scored(s) ? site.n : 0);
  if (is_scored(s)) out.score = scores_.data();
  TIERD_TRY(timed(s, "predict",
                  [&] { return predictor.call(&tierd_predictor_1::predict, "predict", s, &rows, &out); }));
  if (out.all == 0 && out.n > site.n)
    return predictor.fault("predict", fmt::format("{} neurons, expected at most {}", out.n, site.n));
  const uint32_t n = out.all != 0 ? site.n : out.n;
  scores_.resize(is_scored(s) && out.scored != 0 ? n : 0);
  Status sound = check_scores(scores_);
  if (sound.ok() && out.all == 0) {
    neurons_.resize(n);
    sound = check_neurons(neurons_, site.n);
  }
  if (!sound.ok()) return predictor.fault("predict", sound.error().detail);
  if (out.all != 0) return ActiveSet::all(site.n, scores_);
  if (pass.rows <= 1) return ActiveSet::of(neurons_, {}, scores_);
  row_masks_.resize(uint64_t{n} * mask_words(pass.rows));
  if (trim_row_masks(row_masks_, pass.rows)) return ActiveSet::of(neurons_, {}, scores_);
  return ActiveSet::of(neurons_, row_masks_, scores_);
}

Status Prediction::tell(SiteId site, const Pass& pass, const Outcome& outcome) {
  const auto& [active, level_of, unit_of, measured] = outcome;
  const bool chosen = sites_[site].chosen();
  tierd_set_view predicted =
      set_view(site, active, pass.rows, chosen ? TIERD_SET_GIVEN : TIERD_SET_PREDICTED);
  predicted.level = level_of;
  predicted.unit = unit_of;
  tierd_set_view truth = set_view(site, measured != nullptr ? *measured : active, pass.rows, TIERD_SET_TRUE);
  truth.known = chosen || active.is_all() ? TIERD_KNOWN_ALL
                : measured != nullptr     ? TIERD_KNOWN_SAMPLED
                                          : TIERD_KNOWN_COMPUTED;
  return timed(site, "observe", [&] {
    return strategies_.predictor.call_if(&tierd_predictor_1::observe, "observe", &predicted, &truth);
  });
}

Result<const WishList*> Prediction::ahead(SiteId site, const Pass& pass) {
  const WishList* wishes = &nothing_;
  if (strategies_.predictor.table.look_ahead == nullptr) return wishes;
  if (recording_ != nullptr && reads_x(site) && recording_->input(site, pass).empty()) {
    wishes = &recording_->ahead(site);
  } else {
    TIERD_ASSIGN(wishes, ask_ahead(site, pass));
  }
  if (observer() != nullptr && reads_x(site) && !wishes->empty()) observer()->looked_ahead(site, *wishes);
  return wishes;
}

Result<const WishList*> Prediction::ask_ahead(SiteId site, const Pass& pass) {
  auto& predictor = strategies_.predictor;
  const tierd_rows_view rows = rows_of(site, pass);
  TIERD_TRY(timed(site, "look_ahead", [&] {
    return predictor.call_for_wishes(&tierd_predictor_1::look_ahead, "look_ahead", site, &rows);
  }));
  TIERD_TRY(check_wishes(predictor, "look_ahead", site, sites_, topology_));
  return static_cast<const WishList*>(predictor.wishes);
}

}  // namespace tierd
