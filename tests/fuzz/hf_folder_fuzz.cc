// A Hugging Face folder. The input is config.json, NUL, the index of the shards, NUL, the safetensors file:
// model.safetensors without an index, otherwise shard.safetensors.
#include "core/store/source.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  folder.write("config.json", take_text(input));
  const std::string_view index = take_text(input);
  folder.write_unless_empty("model.safetensors.index.json", index);
  folder.write_unless_empty("model.safetensors", index.empty() ? input : "");
  folder.write_unless_empty("shard.safetensors", index.empty() ? "" : input);
  expect_model(open_source(folder.path()), folder.path());
}

}  // namespace tierd
