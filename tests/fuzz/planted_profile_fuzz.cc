// A sparsity profile of configs/models/planted.
#include <cmath>

#include "core/base/check.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"
#include "tools/lab/planted/channel_factors.h"
#include "tools/lab/planted/layer_profile.h"
#include "tools/lab/planted/profile.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const std::string file = folder.write("profile.toml", input);
  const auto channels = read_channel_profile(file);
  if (!channels.ok()) return expect_one_line(channels.error(), folder.path());
  if (*channels) {
    const ChannelFactors factors(**channels, {0.0f, 0.5f, 1.0f});
    for (uint32_t i = 0; i < 16; ++i)
      TIERD_CHECK(std::isfinite(factors.of(i << 28)) && factors.of(i << 28) > 0);
    return;
  }
  const auto profile = read_planted_profile(file);
  if (!profile.ok()) return expect_one_line(profile.error(), folder.path());
  const LayerProfile layer = layer_profile(profile->mean, *profile);
  for (const double number : {layer.noise, layer.spread, layer.mean, layer.margin})
    TIERD_CHECK(std::isfinite(number));
}

}  // namespace tierd
