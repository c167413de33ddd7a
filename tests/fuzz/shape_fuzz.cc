// A shape file of configs/models.
#include "core/model/shape_file.h"

#include "core/base/check.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const auto config = read_shape(folder.write("shape.toml", input));
  if (!config.ok()) return expect_one_line(config.error(), folder.path());
  TIERD_CHECK(rope_frequencies(config->rope, config->rotary_dim(), config->context_length).size() ==
              config->rotary_dim() / 2);
}

}  // namespace tierd
