// A sparsity profile of configs/models/planted.
#include <cmath>

#include "core/base/check.h"
#include "core/store/planted/layer_profile.h"
#include "core/store/planted/profile.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const auto profile = read_planted_profile(folder.write("profile.toml", input));
  if (!profile.ok()) return expect_one_line(profile.error(), folder.path());
  const LayerProfile layer = layer_profile(profile->mean, *profile);
  for (const double number : {layer.noise, layer.spread, layer.mean, layer.margin})
    TIERD_CHECK(std::isfinite(number));
}

}  // namespace tierd
