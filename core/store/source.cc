#include "core/store/source.h"

#include <filesystem>

#include "core/base/file.h"
#include "core/formats/model_file.h"
#include "core/store/channel_order.h"
#include "core/store/manifest.h"

namespace tierd {

Result<std::unique_ptr<TensorSource>> open_source(const std::string& path, const SourceOptions& options) {
  if (is_store(path)) return Error{Code::invalid_argument, path, "is a store, expected a model to convert"};
  TIERD_ASSIGN(std::unique_ptr<TensorSource> source,
               open_model_file(path, {options.tokenizer, options.zeros_percent}));
  if (options.order.empty()) return source;
  return in_order_of_use(std::move(source), {options.order, options.layer_group, options.expert_order});
}

bool is_store(const std::string& path) {
  return file_exists(std::filesystem::path(path) / kManifestFile);
}

}  // namespace tierd
