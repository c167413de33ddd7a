// What is active in a run that nothing computes, drawn by a profile (run.activity): either which neurons
// fire, in the place of what a predictor would say of the run's text; or the hidden states that a predictor
// would look at, which then says it itself (run.drawn).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "core/engine/model_plan.h"
#include "core/kernel/pass/recording.h"
#include "tools/lab/activity/hidden_states.h"
#include "tools/lab/activity/profile.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {

// Neurons of networks that are bundles, and all that is cut into channels, in the order of the walk; the rest
// is used whole. Prompts use everything, of which only what is drawn fires.
class DrawnSets final : public Recording {
 public:
  // `sequences`: that the run continues at once. Errors: unsupported, for a mixture, whose experts a router
  // chooses; invalid_argument, where nothing is cut so that any of it could be left out.
  static Result<std::unique_ptr<DrawnSets>> create(const ActivityProfile& profile, const ModelPlan& model,
                                                   uint32_t sequences, uint64_t seed);

  bool decides(SiteId site) const override { return drawn_[site].has_value(); }
  // A step's first pass draws a token for each of its rows.
  ActiveSet predicted(SiteId site, const Pass& pass) override;
  const WishList& ahead(SiteId) override { return nothing_; }  // nobody sees what will be drawn
  ActiveSet measured(SiteId site) override { return present_[*drawn_[site]].set(); }
  Fired fired(SiteId site) override;

 private:
  // The neurons that any row of the present step uses, and which.
  struct Present {
    std::vector<uint32_t> neurons;
    std::vector<uint64_t> row_masks;  // [neurons x mask_words(rows)]; empty where there is one row
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
  std::vector<uint64_t> masks_;   // filled in one function; a member so that its memory is reused
  const WishList nothing_;
};

// What operators that are cut into channels compute from: each kind of operator has states of its own.
class DrawnStates final : public Recording {
 public:
  // Errors: invalid_argument, where the profile has no [hidden], or nothing is cut into channels.
  static Result<std::unique_ptr<DrawnStates>> create(const ActivityProfile& profile, const ModelPlan& model,
                                                     uint32_t sequences, uint64_t seed);

  bool decides(SiteId) const override { return false; }
  std::span<const float> input(SiteId site, const Pass& pass) override;
  // Predictors say these.
  ActiveSet predicted(SiteId site, const Pass&) override { return ActiveSet::all(n_[site]); }
  const WishList& ahead(SiteId) override { return nothing_; }
  // What is drawn fires all of it.
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

// What run.activity and run.drawn say. Errors: those of both, and of read_activity_profile.
Result<std::unique_ptr<Recording>> draw_activity(const Config& config, const ModelPlan& model);

}  // namespace tierd
