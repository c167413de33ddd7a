#include "core/store/source.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "core/store/channel_order.h"
#include "core/store/file.h"
#include "core/store/gguf_folder.h"
#include "core/store/gguf_reader.h"
#include "core/store/hf_folder.h"
#include "core/store/llama2c.h"
#include "core/store/manifest.h"
#include "core/store/shape_source.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSniffedBytes = 9;

struct Beginning {
  std::array<char, kSniffedBytes> bytes{};
  size_t size = 0;
  std::string_view text() const { return {bytes.data(), size}; }
};

Result<Beginning> read_beginning(const File& file) {
  Beginning beginning;
  beginning.size = std::min<uint64_t>(kSniffedBytes, file.size_bytes());
  TIERD_TRY(file.read_exact(0, std::as_writable_bytes(std::span(beginning.bytes.data(), beginning.size))));
  return beginning;
}

// The folder's index decides where it knows the file; otherwise the file is the whole model.
Result<std::unique_ptr<TensorSource>> open_safetensors(const fs::path& path, const SourceOptions& options) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const bool is_shard = path.filename().string().find("-of-") != std::string::npos;
  return open_hf_folder(folder, is_shard ? "" : path.filename().string(), options);
}

Result<std::unique_ptr<TensorSource>> open_file(const std::string& path, const SourceOptions& options) {
  TIERD_ASSIGN(File file, File::open(path));
  TIERD_ASSIGN(const Beginning beginning, read_beginning(file));
  if (beginning.text().starts_with("GGUF")) return open_gguf(std::move(file), options);
  if (beginning.size == kSniffedBytes && beginning.bytes.back() == '{') {
    return open_safetensors(path, options);
  }
  if (looks_like_llama2c(file)) return open_llama2c(std::move(file), options);
  const std::string hint =
      beginning.text().starts_with("PK") ? "; a PyTorch file: convert it to safetensors" : "";
  return Error{Code::unsupported, path,
               fmt::format("neither GGUF, safetensors nor a llama2.c checkpoint{}", hint)};
}

Result<std::unique_ptr<TensorSource>> open_plain(const std::string& path, const SourceOptions& options) {
  if (path.ends_with(".toml")) {
    TIERD_ASSIGN(std::unique_ptr<TensorSource> shape, ShapeSource::open(path, options.zeros_percent));
    return shape;
  }
  if (options.zeros_percent != 0) {
    return Error{Code::invalid_argument, "model.zeros",
                 fmt::format("is what a shape without weights is taken to have, and {} has weights", path)};
  }
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return open_file(path, options);
  if (is_store(path)) {
    return Error{Code::invalid_argument, path, "is a store already, expected a model to read"};
  }
  // Repositories of GGUF files may have the config.json of the model that they were made of.
  if (!has_safetensors(path)) {
    TIERD_ASSIGN(const std::optional<std::string> gguf, gguf_of_folder(path));
    if (gguf) return open_file(*gguf, options);
  }
  return open_hf_folder(path, "", options);
}

}  // namespace

Result<std::unique_ptr<TensorSource>> open_source(const std::string& path, const SourceOptions& options) {
  TIERD_ASSIGN(std::unique_ptr<TensorSource> source, open_plain(path, options));
  if (options.order.empty()) return source;
  return in_order_of_use(std::move(source), {options.order, options.layer_group, options.expert_order});
}

bool is_store(const std::string& path) {
  return file_exists(fs::path(path) / kManifestFile);
}

}  // namespace tierd
