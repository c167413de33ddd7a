#include "core/formats/hf_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/json_fields.h"
#include "core/base/log.h"
#include "core/formats/file_source.h"
#include "core/formats/hf_config.h"
#include "core/formats/hf_tensors.h"
#include "core/formats/safetensors.h"
#include "core/formats/vocab_files.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kConfigFile = "config.json";
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";
constexpr uint64_t kMaxIndexBytes = 100'000'000;

// Uses a saved head as the head, whatever the configuration says: training programs untie it, or add tokens,
// and leave tie_word_embeddings unchanged. If the two are equal, using it changes nothing.
void untie_saved_head(const std::string& config_path, SourceParts& parts) {
  const bool saved = std::ranges::any_of(
      parts.tensors, [](const TensorInfo& tensor) { return tensor.name == "head" && tensor.bytes() != 0; });
  if (!saved || !parts.config.tied_embeddings) return;
  parts.config.tied_embeddings = false;
  say_once(fmt::format(
      "{}: tie_word_embeddings is true, but the checkpoint has lm_head.weight, which is used", config_path));
}

Error escapes(const std::string& index_path, const std::string& file) {
  return {Code::corrupt, index_path,
          fmt::format("weight_map names the file \"{}\", expected a file of this folder", file)};
}

// Returns, by shard, the tensors that the index assigns to it.
Result<std::map<std::string, std::vector<std::string>>> read_index(const std::string& path) {
  TIERD_ASSIGN(const json root, read_json_file(path, kMaxIndexBytes));
  TIERD_ASSIGN(const JsonFields fields, JsonFields::of(root, path));
  TIERD_ASSIGN(const JsonFields weight_map, fields.object("weight_map"));
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, file] : root["weight_map"].items()) {
    TIERD_ASSIGN(const std::string name, weight_map.text(tensor));
    if (name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos ||
        !name.ends_with(".safetensors")) {
      return escapes(path, name);
    }
    shards[name].push_back(tensor);
  }
  return shards;
}

// Opens a safetensors file and adds its tensors. `wanted`: only these, which the file must have.
Status add_file(const std::string& path, const std::vector<std::string>* wanted, SourceParts& parts,
                HfTensors& into) {
  TIERD_ASSIGN(File file, File::open(path));
  TIERD_ASSIGN(const auto tensors, read_safetensors_header(file));
  if (wanted == nullptr) {
    for (const SafetensorsTensor& tensor : tensors) TIERD_TRY(into.add(tensor, file));
  } else {
    std::unordered_map<std::string_view, const SafetensorsTensor*> by_name;
    for (const SafetensorsTensor& tensor : tensors) by_name.emplace(tensor.name, &tensor);
    for (const std::string& name : *wanted) {
      const auto found = by_name.find(name);
      if (found == by_name.end()) {
        return Error{Code::corrupt, path,
                     fmt::format("the tensor \"{}\" is missing, although {} names this file for it", name,
                                 kIndexFile)};
      }
      TIERD_TRY(into.add(*found->second, file));
    }
  }
  parts.files.push_back(std::move(file));
  return {};
}

Status add_shards(const fs::path& folder, SourceParts& parts, HfTensors& into) {
  const std::string index_path = folder / kIndexFile;
  TIERD_ASSIGN(const auto shards, read_index(index_path));
  parts.companions.push_back(index_path);
  for (const auto& [name, tensors] : shards) TIERD_TRY(add_file(folder / name, &tensors, parts, into));
  return {};
}

Status add_weights(const fs::path& folder, const std::string& weights, SourceParts& parts, HfTensors& into) {
  if (!weights.empty()) return add_file(folder / weights, nullptr, parts, into);
  if (file_exists(folder / kSingleFile)) return add_file(folder / kSingleFile, nullptr, parts, into);
  if (file_exists(folder / kIndexFile)) return add_shards(folder, parts, into);
  const bool pickle =
      file_exists(folder / "pytorch_model.bin") || file_exists(folder / "pytorch_model.bin.index.json");
  return Error{Code::not_found, folder.string(),
               fmt::format("found neither {} nor {}{}", kSingleFile, kIndexFile,
                           pickle ? "; convert pytorch_model.bin to safetensors" : "")};
}

// Returns the folder's name, or REPO for models--OWNER--REPO/snapshots/COMMIT in Hugging Face's cache.
std::string name_of(const fs::path& folder) {
  const fs::path path = (folder / "").lexically_normal().parent_path();
  const std::string repository = path.parent_path().parent_path().filename();
  const bool cached = path.parent_path().filename() == "snapshots" && repository.starts_with("models--");
  return cached ? repository.substr(repository.rfind("--") + 2) : path.filename().string();
}

}  // namespace

bool has_safetensors(const std::string& folder) {
  return file_exists(fs::path(folder) / kSingleFile) || file_exists(fs::path(folder) / kIndexFile);
}

Result<std::unique_ptr<TensorSource>> open_hf_folder(const std::string& folder, const std::string& weights,
                                                     const ModelFileOptions& options) {
  const fs::path root(folder);
  SourceParts parts;
  parts.path = folder;
  const std::string config_path = root / kConfigFile;
  TIERD_ASSIGN(parts.config, read_hf_config(config_path));
  parts.config.name = name_of(root);
  parts.companions.push_back(config_path);
  HfTensors into(parts);
  TIERD_TRY(add_weights(root, weights, parts, into));
  TIERD_TRY(into.finish());
  untie_saved_head(config_path, parts);

  TIERD_ASSIGN(FoundVocab found, find_hf_vocab(folder, parts.config.vocab_size, options));
  parts.vocab = std::move(found.vocab);
  parts.companions.insert(parts.companions.end(), found.files.begin(), found.files.end());
  return make_file_source(std::move(parts));
}

}  // namespace tierd
