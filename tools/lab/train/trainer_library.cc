#include "tools/lab/train/trainer_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "core/strategy/plugin_path.h"
#include "core/system/memory_limits.h"
#include "tools/lab/train/trainer_entry.h"

namespace tierd {

Result<void*> trainer_symbol(const char* command, const char* symbol) {
  const std::string file = PluginPath::installed() + "/" + kTrainerFile;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return Error{Code::unsupported, command,
                 "this tier-train was built without libtorch; run ci/install libtorch-dev, configure and "
                 "build again"};
  }
  TIERD_TRY(expect_memory(kTrainerBytes, fmt::format("{}, which loads libtorch,", command)));
  // RTLD_DEEPBIND: its libraries look for names among themselves first, not in libsentencepiece.
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  void* const found = library == nullptr ? nullptr : ::dlsym(library, symbol);
  if (found == nullptr) {
    const char* const why = ::dlerror();
    return Error{Code::unsupported, file,
                 fmt::format("cannot be loaded: {}", why == nullptr ? "no reason" : why)};
  }
  return found;
}

}  // namespace tierd
