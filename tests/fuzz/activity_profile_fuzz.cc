// A profile of configs/activity. Activity can be drawn from an accepted one.
#include <cmath>

#include "core/base/check.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"
#include "tools/lab/activity/closed_forms.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const auto profile = read_activity_profile(folder.write("profile.toml", input));
  if (!profile.ok()) return expect_one_line(profile.error(), folder.path());
  TIERD_CHECK(std::isfinite(share_of_hottest(profile->rates, 0.2)));
  TIERD_CHECK(std::isfinite(new_in_token(profile->rates, profile->lambda, 4)));
  for (const bool by_depth : {false, true}) {
    auto activity = StickyActivity::create(*profile, {.neurons = {70, 3, 64}, .by_depth = by_depth});
    if (!activity.ok()) {
      expect_one_line(activity.error(), "");
      continue;
    }
    for (uint32_t t = 0; t < 3; ++t) activity->next_token(0);
    for (const uint32_t neuron : list_active(activity->active(0, 1))) TIERD_CHECK(neuron < 3);
  }
}

}  // namespace tierd
