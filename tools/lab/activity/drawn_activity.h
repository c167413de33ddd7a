// The active neurons of a run that computes nothing, drawn by a profile and played as its Recording: either
// the sets of active neurons, in place of a predictor's, or the hidden states that a predictor such as top-k
// then selects from.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/engine/model_plan.h"
#include "core/kernel/pass/recording.h"
#include "tools/lab/activity/hidden_states.h"
#include "tools/lab/activity/profile.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {

// Draws the active neurons of bundles and of everything cut into channels, in the order of the walk; all
// other neurons are used. Prompts use every neuron, but only the drawn ones fire.
class DrawnSets final : public Recording {
 public:
  // `sequences`: the number of sequences that the run continues at once. Errors: unsupported, for a mixture,
  // whose experts a router chooses; invalid_argument, if no site is cut into neurons that can be left out.
  static Result<std::unique_ptr<DrawnSets>> create(const ActivityProfile& profile, const ModelPlan& model,
                                                   uint32_t sequences, uint64_t seed);

  bool decides(SiteId site) const override { return drawn_[site].has_value(); }
  // The first pass of a step draws a token for each of its rows.
  ActiveSet predicted(SiteId site, const Pass& pass) override;
  const WishList& ahead(SiteId) override { return nothing_; }  // drawn sets cannot be foreseen
  ActiveSet measured(SiteId site) override { return present_[*drawn_[site]].set(); }
  Fired fired(SiteId site) override;

 private:
  // The neurons that any row of the present step uses, with row masks.
  struct Present {
    std::vector<uint32_t> neurons;
    std::vector<uint64_t> row_masks;  // [neurons x mask_words(rows)]; empty for one row
    ActiveSet set() const { return ActiveSet::of(neurons, row_masks); }
  };

  explicit DrawnSets(StickyActivity source) : source_(std::move(source)) {}
  void draw(const Pass& pass);

  StickyActivity source_;
  std::vector<std::optional<uint32_t>> drawn_;  // [sites] its layer in the source
  std::optional<uint32_t> step_;
  // [layers][rows] bits of the tokens of the present step.
  std::vector<std::vector<std::vector<uint64_t>>> tokens_;
  std::vector<Present> present_;  // [layers]
  std::vector<uint64_t> masks_;   // used by one function; a member so that its memory is reused
  const WishList nothing_;
};

// Draws the inputs of operators that are cut into channels: each kind of operator has states of its own.
class DrawnStates final : public Recording {
 public:
  // Errors: invalid_argument, if the profile has no [hidden], or nothing is cut into channels.
  static Result<std::unique_ptr<DrawnStates>> create(const ActivityProfile& profile, const ModelPlan& model,
                                                     uint32_t sequences, uint64_t seed);

  bool decides(SiteId) const override { return false; }
  std::span<const float> input(SiteId site, const Pass& pass) override;
  // Used only for sites without drawn inputs; elsewhere the predictor answers.
  ActiveSet predicted(SiteId site, const Pass&) override { return ActiveSet::all(n_[site]); }
  const WishList& ahead(SiteId) override { return nothing_; }
  // Every channel of a drawn state fires.
  ActiveSet measured(SiteId site) override { return ActiveSet::all(n_[site]); }
  Fired fired(SiteId) override { return {}; }

 private:
  struct Place {
    uint16_t group = 0;  // of operators
    uint32_t layer = 0;  // among the group's sites
  };

  DrawnStates() = default;
  void draw(const Pass& pass);

  std::vector<uint32_t> n_;                     // [sites] neurons
  std::vector<std::optional<Place>> places_;    // [sites]
  std::map<uint16_t, HiddenStates> operators_;  // by the group of operators
  std::optional<uint32_t> step_;
  std::vector<std::vector<float>> inputs_;  // [sites] of the present step's rows
  const WishList nothing_;
};

enum class Drawn : uint8_t { sets, states };
constexpr std::array<std::string_view, 2> names_of(Drawn) {
  return {"sets", "states"};
}

// `sequences`: continued at once. Errors: those of read_activity_profile, and of DrawnSets or DrawnStates.
Result<std::unique_ptr<Recording>> draw_activity(const std::string& profile, Drawn drawn,
                                                 const ModelPlan& model, uint32_t sequences, uint64_t seed);

}  // namespace tierd
