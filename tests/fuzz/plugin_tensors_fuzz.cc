// A safetensors file that a configuration names for a plugin.
#include "core/run/plugin_tensors.h"

#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const std::string path = folder.write("tensors.safetensors", input);
  const auto file = PluginTensorFile::open(path);
  if (!file.ok()) return expect_one_line(file.error(), path);
  const Status of_model = file->check_model(ModelConfig{});
  if (!of_model.ok()) expect_one_line(of_model.error(), path);
  const auto tensors = file->read();
  if (!tensors.ok()) expect_one_line(tensors.error(), path);
}

}  // namespace tierd
