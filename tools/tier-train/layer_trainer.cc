#include "tools/tier-train/layer_trainer.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "core/host/plugin_path.h"
#include "tools/tier-train/trainer_entry.h"

namespace tierd {

Result<TrainLayer> load_trainer() {
  const std::string file = PluginPath::installed() + "/" + kTrainerFile;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return Error{Code::unsupported, "predictor",
                 "this tier-train was built without libtorch; run ci/install libtorch-dev, configure and "
                 "build again"};
  }
  // RTLD_DEEPBIND: its libraries look for names among themselves first, not in libsentencepiece.
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  void* const symbol = library == nullptr ? nullptr : ::dlsym(library, kTrainerSymbol);
  if (symbol == nullptr) {
    const char* const why = ::dlerror();
    return Error{Code::unsupported, file,
                 fmt::format("cannot be loaded: {}", why == nullptr ? "no reason" : why)};
  }
  const auto entry = reinterpret_cast<TrainerEntry*>(symbol);
  return TrainLayer([entry](const LayerTask& task, const TrainOptions& options) {
    Result<LowRank> trained = LowRank{};
    entry(task, options, trained);
    return trained;
  });
}

}  // namespace tierd
