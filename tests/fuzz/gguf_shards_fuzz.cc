// A GGUF file in two shards. The input is the size of the first shard as four bytes, little endian, then both
// shards.
#include <cstring>

#include "core/store/source.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  uint32_t first = 0;
  if (input.size() < sizeof first) return;
  std::memcpy(&first, input.data(), sizeof first);
  input.remove_prefix(sizeof first);
  if (first > input.size()) return;
  const std::string path = folder.write("model-00001-of-00002.gguf", input.substr(0, first));
  folder.write("model-00002-of-00002.gguf", input.substr(first));
  expect_model(open_source(path), folder.path());
}

}  // namespace tierd
