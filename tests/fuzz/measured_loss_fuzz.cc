// A verdict of tier-compare beside a model. The input is its file.
#include "core/run/measured_loss.h"

#include "core/base/check.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const LossSettings settings{"a", {{"dram", 0.5}}};
  static const std::string path = *keep_loss(folder.path(), settings, {});
  (void)folder.write(path.substr(folder.path().size() + 1).c_str(), input);
  const auto loss = find_loss(folder.path(), settings);
  if (!loss.ok()) return expect_one_line(loss.error(), path);
  if (!*loss) return;
  // An accepted verdict is found unchanged after it was kept.
  TIERD_CHECK(keep_loss(folder.path(), settings, **loss).ok());
  const auto again = find_loss(folder.path(), settings);
  TIERD_CHECK_MSG(again.ok(), again.error().line());
  TIERD_CHECK(*again && (*again)->divergence == (*loss)->divergence && (*again)->text == (*loss)->text);
}

}  // namespace tierd
