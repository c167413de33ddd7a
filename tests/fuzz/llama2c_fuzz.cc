// A llama2.c checkpoint of either version.
#include "core/store/source.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  expect_model(open_source(folder.write("model.bin", input)), folder.path());
}

}  // namespace tierd
