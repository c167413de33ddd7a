#include "core/formats/model_file.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/formats/gguf_folder.h"
#include "core/formats/gguf_reader.h"
#include "core/formats/hf_folder.h"
#include "core/formats/llama2c.h"
#include "core/formats/shape_source.h"

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
Result<std::unique_ptr<TensorSource>> open_safetensors(const fs::path& path,
                                                       const ModelFileOptions& options) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const bool is_shard = path.filename().string().find("-of-") != std::string::npos;
  return open_hf_folder(folder, is_shard ? "" : path.filename().string(), options);
}

Result<std::unique_ptr<TensorSource>> open_file(const std::string& path, const ModelFileOptions& options) {
  TIERD_ASSIGN(File file, File::open(path));
  TIERD_ASSIGN(const Beginning beginning, read_beginning(file));
  if (beginning.text().starts_with("GGUF")) return open_gguf(std::move(file), options);
  if (beginning.size == kSniffedBytes && beginning.bytes.back() == '{') {
    return open_safetensors(path, options);
  }
  if (looks_like_llama2c(file)) return open_llama2c(std::move(file), options);
  const std::string hint =
      beginning.text().starts_with("PK") ? "; convert this PyTorch file to safetensors" : "";
  return Error{Code::unsupported, path,
               fmt::format("is neither GGUF, nor safetensors, nor a llama2.c checkpoint{}", hint)};
}

}  // namespace

Result<std::unique_ptr<TensorSource>> open_model_file(const std::string& path,
                                                      const ModelFileOptions& options) {
  if (path.ends_with(".toml")) {
    TIERD_ASSIGN(std::unique_ptr<TensorSource> shape, ShapeSource::open(path, options.zeros_percent));
    return shape;
  }
  if (options.zeros_percent != 0) {
    return Error{
        Code::invalid_argument, "model.zeros",
        fmt::format("applies to a shape without weights only, but {} has weights; leave out model.zeros",
                    path)};
  }
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return open_file(path, options);
  // Repositories of GGUF files may have the config.json of the model that they were made of.
  if (!has_safetensors(path)) {
    TIERD_ASSIGN(const std::optional<std::string> gguf, gguf_of_folder(path));
    if (gguf) return open_file(*gguf, options);
  }
  return open_hf_folder(path, "", options);
}

}  // namespace tierd
