#include "tools/tier/tokenize/load_vocab.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/store/manifest.h"
#include "core/store/source.h"

namespace tierd {
namespace {

bool is_tokenizer_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return false;
  const std::string extension = path.extension().string();
  if (extension == ".json" || extension == ".model") return true;
  return extension == ".bin" && path.filename().string().starts_with("tok");
}

Error no_tokenizer(const std::string& path) {
  return Error{Code::not_found, path, "has no tokenizer; use its tokenizer file as -m"};
}

}  // namespace

Result<Vocab> load_vocab(const std::string& path) {
  if (is_tokenizer_file(path)) return read_tokenizer_file(path, 0);
  if (is_store(path)) {
    TIERD_ASSIGN(Manifest manifest, read_manifest(path));
    if (!manifest.has_vocab) return no_tokenizer(path);
    return std::move(manifest.vocab);
  }
  TIERD_ASSIGN(const std::unique_ptr<TensorSource> source, open_source(path));
  const Vocab* vocab = source->vocab();
  if (vocab == nullptr) return no_tokenizer(path);
  return *vocab;
}

}  // namespace tierd
