#include "tools/lab/train/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/base/disk.h"
#include "core/base/file.h"
#include "core/formats/safetensors.h"
#include "core/formats/safetensors_writer.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kConfig = "config.json";
constexpr const char* kProvenance = "distillation.json";
// What transformers and tierd read beside the weights, where it is there.
constexpr std::array kCompanions = {kConfig,
                                    "generation_config.json",
                                    "tokenizer.json",
                                    "tokenizer.model",
                                    "tokenizer_config.json",
                                    "special_tokens_map.json",
                                    "added_tokens.json",
                                    "vocab.json",
                                    "merges.txt",
                                    "chat_template.jinja"};
constexpr uint64_t kMaxCompanionBytes = 1 << 28;

Status write_file(const std::string& path, const std::string& text) {
  Disk disk;
  TIERD_ASSIGN(const OpenFile file, disk.open(path, true));
  TIERD_TRY(disk.write(file, 0, std::as_bytes(std::span(text))));
  return disk.sync(file);
}

}  // namespace

Status ModelFolder::accepts(const TensorSource& source) {
  for (const TensorInfo& tensor : source.tensors()) {
    if (tensor.theirs.empty()) {
      return Error{Code::unsupported, source.path(),
                   "is no Hugging Face folder, which alone can be distilled"};
    }
    if (tensor.run_bytes != 0) {
      return Error{Code::unsupported, source.path(),
                   fmt::format("{} holds q, k and v in one, which cannot be distilled", tensor.theirs)};
    }
  }
  return {};
}

Result<ModelFolder> ModelFolder::create(const TensorSource& source, const std::string& out) {
  const fs::path whole = (fs::path(out) / "").lexically_normal().parent_path();  // without a slash at its end
  std::error_code ignored;
  if (fs::exists(whole, ignored)) {
    return Error{Code::invalid_argument, out,
                 "is there already; a distilled model needs a folder of its own"};
  }
  ModelFolder folder(source, whole.string());
  TIERD_TRY(Disk().make_directory(folder.partial()));
  return folder;
}

Status ModelFolder::write(const std::function<Result<std::vector<float>>(size_t)>& values,
                          const nlohmann::ordered_json& provenance) const {
  TIERD_TRY(write_weights(values));
  TIERD_TRY(copy_companions());
  TIERD_TRY(write_file(partial() + "/" + kProvenance, provenance.dump(2) + "\n"));
  Disk disk;
  TIERD_ASSIGN(const OpenFile inside, open_directory(partial()));
  TIERD_TRY(disk.sync(inside));
  TIERD_TRY(disk.rename(partial(), out_));
  TIERD_ASSIGN(const OpenFile around, open_directory(parent_directory(out_)));
  return disk.sync(around);
}

Status ModelFolder::write_weights(const std::function<Result<std::vector<float>>(size_t)>& values) const {
  const std::vector<TensorInfo>& tensors = source_.tensors();
  std::vector<SafetensorsEntry> entries;
  for (const TensorInfo& tensor : tensors) {
    std::vector<uint64_t> shape = {tensor.cols};
    if (tensor.rows != 1) shape = {tensor.rows, tensor.cols};
    entries.push_back({tensor.theirs, dtype_of_encoding(tensor.encoding).value(), std::move(shape)});
  }
  TIERD_ASSIGN(SafetensorsWriter writer, SafetensorsWriter::create(partial() + "/" + kWeights, entries));
  for (size_t i = 0; i < tensors.size(); ++i) {
    TIERD_ASSIGN(std::vector<float> of, values(i));
    std::vector<std::byte> encoded(tensors[i].bytes());
    encode(tensors[i].encoding, of, encoded);
    decode(tensors[i].encoding, encoded, of);
    if (!std::all_of(of.begin(), of.end(), [](float value) { return std::isfinite(value); })) {
      return Error{Code::invalid_argument, tensors[i].theirs,
                   fmt::format("what was learned does not fit {}, which the model is in; a lower "
                               "--learning-rate or a model in f32 does",
                               name(tensors[i].encoding))};
    }
    TIERD_TRY(writer.append(encoded));
  }
  return writer.finish();
}

Status ModelFolder::copy_companions() const {
  for (const char* name : kCompanions) {
    const std::string from = source_.path() + "/" + name;
    if (!file_exists(from)) continue;
    TIERD_ASSIGN(const std::string text, read_whole_file(from, kMaxCompanionBytes));
    TIERD_TRY(write_file(partial() + "/" + name, text));
  }
  return {};
}

}  // namespace tierd
