#include "core/formats/file_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <unordered_map>

#include <fmt/format.h>
#include <xxhash.h>

#include "core/base/check.h"
#include "core/formats/stored_form.h"

namespace tierd {
namespace {

class FileSource : public TensorSource {
 public:
  FileSource(SourceParts parts, std::vector<TensorInfo> tensors, std::string fingerprint)
      : parts_(std::move(parts)), tensors_(std::move(tensors)), fingerprint_(std::move(fingerprint)) {}

  const ModelConfig& config() const override { return parts_.config; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return parts_.vocab ? &*parts_.vocab : nullptr; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string path() const override { return parts_.path; }

  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    TIERD_CHECK(offset <= tensor.bytes() && out.size() <= tensor.bytes() - offset);
    if (tensor.form != nullptr) return tensor.form->read(parts_.files, tensor, offset, out);
    return parts_.files[tensor.file].read_exact(tensor.offset + offset, out);
  }

 private:
  SourceParts parts_;
  std::vector<TensorInfo> tensors_;
  std::string fingerprint_;
};

Error tensor_error(const SourceParts& parts, const TensorInfo& tensor, Code code, std::string detail) {
  return {code, fmt::format("{}: tensor \"{}\"", parts.files[tensor.file].path(), tensor.name),
          std::move(detail)};
}

Status check_tensor(const SourceParts& parts, const TensorInfo& tensor, const TensorSpec& spec) {
  if (tensor.rows != spec.rows || tensor.cols != spec.cols) {
    return tensor_error(parts, tensor, Code::corrupt,
                        fmt::format("shape [{}, {}], the configuration requires [{}, {}]", tensor.rows,
                                    tensor.cols, spec.rows, spec.cols));
  }
  if (tensor.cols % block_values(tensor.encoding) != 0) {
    return tensor_error(parts, tensor, Code::corrupt,
                        fmt::format("rows of {} values in {}, expected a multiple of its block of {}",
                                    tensor.cols, name(tensor.encoding), block_values(tensor.encoding)));
  }
  const uint64_t size = parts.files[tensor.file].size_bytes();
  const bool fits = tensor.form == nullptr ? tensor.offset <= size && tensor.bytes() <= size - tensor.offset
                                           : tensor.form->fits(parts.files, tensor);
  if (fits) return {};
  return tensor_error(parts, tensor, Code::corrupt,
                      fmt::format("{} bytes at offset {} do not fit into the file's {}", tensor.bytes(),
                                  tensor.offset, size));
}

// Returns the required tensors in their order, each found and checked.
Result<std::vector<TensorInfo>> select_required(const SourceParts& parts) {
  std::unordered_map<std::string_view, const TensorInfo*> unused;
  for (const TensorInfo& tensor : parts.tensors) {
    if (!unused.emplace(tensor.name, &tensor).second) {
      return tensor_error(parts, tensor, Code::corrupt, "occurs twice");
    }
  }
  std::vector<TensorInfo> selected;
  for (const TensorSpec& spec : required_tensors(parts.config)) {
    const auto found = unused.find(spec.name);
    if (found == unused.end()) {
      return Error{Code::corrupt, parts.path, fmt::format("the tensor \"{}\" is missing", spec.name)};
    }
    TIERD_TRY(check_tensor(parts, *found->second, spec));
    selected.push_back(*found->second);
    unused.erase(found);
  }
  // Empty tensors are left over from training programs and hold no weights.
  std::erase_if(unused, [](const auto& named) { return named.second->bytes() == 0; });
  if (!unused.empty()) {
    // Ignoring the tensor would silently change the model's results.
    return tensor_error(parts, *unused.begin()->second, Code::unsupported,
                        fmt::format("is not a tensor of the architecture {}", parts.config.architecture));
  }
  return selected;
}

std::string stamp(const File& file) {
  std::error_code failed;  // the working directory has vanished: use the path as given
  const auto absolute = std::filesystem::absolute(file.path(), failed).lexically_normal();
  return fmt::format("{}\n{}\n{}\n", failed ? file.path() : absolute.string(), file.size_bytes(),
                     file.modified_ns());
}

Result<std::string> make_fingerprint(const SourceParts& parts) {
  std::string text;
  for (const File& file : parts.files) text += stamp(file);
  for (const std::string& path : parts.companions) {
    TIERD_ASSIGN(const File file, File::open(path));
    text += stamp(file);
  }
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

Result<std::unique_ptr<TensorSource>> make_file_source(SourceParts parts) {
  TIERD_ASSIGN(std::vector<TensorInfo> tensors, select_required(parts));
  if (parts.vocab && parts.vocab->pieces.size() > parts.config.vocab_size) {
    return Error{
        Code::corrupt, parts.path,
        fmt::format(
            "the tokenizer has {} tokens, but the model's vocabulary has {}; expected at most as many",
            parts.vocab->pieces.size(), parts.config.vocab_size)};
  }
  TIERD_ASSIGN(std::string fingerprint, make_fingerprint(parts));
  return std::unique_ptr<TensorSource>(
      std::make_unique<FileSource>(std::move(parts), std::move(tensors), std::move(fingerprint)));
}

}  // namespace tierd
