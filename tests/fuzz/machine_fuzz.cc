// The description of a machine (configs/hardware).
#include "core/time/machine.h"

#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const std::string path = folder.write("machine.toml", input);
  const auto machine = read_machine(path);
  if (!machine.ok()) expect_one_line(machine.error(), path);
}

}  // namespace tierd
