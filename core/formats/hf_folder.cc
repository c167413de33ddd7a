#include "core/formats/hf_folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "core/base/json_fields.h"
#include "core/base/log.h"
#include "core/formats/file_source.h"
#include "core/formats/hf_config.h"
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

struct NamePair {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array<NamePair, 8> kModelNames = {{
    {"embed_tokens", "embed"},
    {"word_embeddings", "embed"},
    {"embed_positions", "position"},
    {"norm", "out_norm"},
    {"final_layer_norm", "out_norm"},
    {"final_layernorm", "out_norm"},
    {"ln_f", "out_norm"},
    {"lm_head", "head"},
}};
constexpr std::array<NamePair, 32> kLayerNames = {{
    {"block_sparse_moe.gate", "router"},
    {"mlp.gate", "router"},
    {"self_attn.q_norm", "q_norm"},
    {"self_attn.k_norm", "k_norm"},
    {"self_attn.query_key_value", "qkv"},
    {"self_attention.query_key_value", "qkv"},
    {"self_attn.q_layernorm", "q_norm"},
    {"self_attn.k_layernorm", "k_norm"},
    {"self_attn.dense", "o"},
    {"self_attention.dense", "o"},
    {"ln_attn", "attn_norm"},
    {"ln_mlp", "ffn_norm"},
    {"mlp.dense_h_to_4h", "up"},
    {"mlp.dense_4h_to_h", "down"},
    {"mlp.c_fc", "up"},
    {"mlp.c_proj", "down"},
    {"mlp.fc1", "up"},
    {"mlp.fc2", "down"},
    {"self_attn.q_proj", "q"},
    {"self_attn.k_proj", "k"},
    {"self_attn.v_proj", "v"},
    {"self_attn.o_proj", "o"},
    {"self_attn.out_proj", "o"},
    {"input_layernorm", "attn_norm"},
    {"self_attn_layer_norm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"final_layer_norm", "ffn_norm"},
    {"mlp.gate_proj", "gate"},
    {"mlp.up_proj", "up"},
    {"mlp.down_proj", "down"},
    {"fc1", "up"},
    {"fc2", "down"},
}};

// In models that norm results, one of these names means another norm.
constexpr std::array<NamePair, 3> kPostNormNames = {{
    {"post_attention_layernorm", "attn_post_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "ffn_post_norm"},
}};

// Names of the operators of one expert of a mixture.
constexpr std::array<NamePair, 6> kExpertNames = {{
    {"w1", "gate"},
    {"w3", "up"},
    {"w2", "down"},
    {"gate_proj", "gate"},
    {"up_proj", "up"},
    {"down_proj", "down"},
}};

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool take_suffix(std::string_view& text, std::string_view suffix) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

// "12.self_attn.q_proj" -> 12, leaving "self_attn.q_proj".
std::optional<uint32_t> take_number(std::string_view& text) {
  uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<size_t>(end - text.data());
  if (failed != std::errc{} || digits == text.size() || *end != '.') return std::nullopt;
  if (digits > 1 && text[0] == '0') return std::nullopt;
  text.remove_prefix(digits + 1);
  return number;
}

template <size_t n>
std::optional<std::string> translate(const std::array<NamePair, n>& names, std::string_view theirs) {
  for (const NamePair& pair : names) {
    if (pair.theirs == theirs) return std::string(pair.ours);
  }
  return std::nullopt;
}

// "mlp.experts.3.up_proj" -> "experts.3.up".
std::optional<std::string> expert_name(std::string_view theirs) {
  if (!take_prefix(theirs, "mlp.experts.") && !take_prefix(theirs, "block_sparse_moe.experts."))
    return std::nullopt;
  const auto expert = take_number(theirs);
  if (!expert) return std::nullopt;
  const auto name = translate(kExpertNames, theirs);
  if (!name) return std::nullopt;
  return fmt::format("experts.{}.{}", *expert, *name);
}

// Returns tierd's name of a tensor, or the file's own name if tierd has none, for the error.
std::string our_name(std::string_view theirs, const ModelConfig& config) {
  std::string_view rest = theirs;
  // The prefix depends on the class that the file was saved from.
  for (const char* saved_from : {"model.", "transformer.", "decoder."}) take_prefix(rest, saved_from);
  const bool bias = take_suffix(rest, ".bias");
  if (!bias && !take_suffix(rest, ".weight")) return std::string(theirs);
  std::string prefix;
  std::optional<std::string> name;
  if (take_prefix(rest, "layers.") || take_prefix(rest, "h.")) {
    const auto layer = take_number(rest);
    if (!layer) return std::string(theirs);
    prefix = fmt::format("layers.{}.", *layer);
    if (config.post_norms) name = translate(kPostNormNames, rest);
    if (!name) name = translate(kLayerNames, rest);
    if (!name) name = expert_name(rest);
  } else {
    name = translate(kModelNames, rest);
  }
  if (!name) return std::string(theirs);
  return prefix + *name + (bias ? ".bias" : "");
}

// Returns whether a tensor is a table that follows from the configuration.
bool is_redundant(std::string_view theirs) {
  return theirs.ends_with(".rotary_emb.inv_freq");
}

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

std::string origin_of(const SafetensorsTensor& tensor, const File& file) {
  return fmt::format("{}: tensor \"{}\"", file.path(), tensor.name);
}

Result<TensorInfo> as_tensor(const SafetensorsTensor& tensor, const ModelConfig& config, const File& file,
                             uint32_t file_index) {
  const auto error = [&](Code code, std::string detail) {
    return Error{code, origin_of(tensor, file), std::move(detail)};
  };
  if (tensor.bytes == 0) {
    TensorInfo empty;
    empty.name = our_name(tensor.name, config);
    empty.theirs = tensor.name;
    empty.file = file_index;
    empty.offset = tensor.offset;
    return empty;
  }
  const auto encoding = encoding_of_dtype(tensor.dtype);
  if (!encoding) {
    return error(Code::unsupported, fmt::format("dtype {}, supported are F32, F16 and BF16", tensor.dtype));
  }
  if (tensor.shape.empty() || tensor.shape.size() > 2) {
    return error(Code::corrupt, fmt::format("{} dimensions, expected 1 or 2", tensor.shape.size()));
  }
  TensorInfo info;
  info.name = our_name(tensor.name, config);
  info.theirs = tensor.name;
  info.encoding = *encoding;
  info.rows = tensor.shape.size() == 2 ? tensor.shape[0] : 1;
  info.cols = tensor.shape.back();
  info.file = file_index;
  info.offset = tensor.offset;
  if (is_gemma(config) && info.rows == 1 && info.name.ends_with("norm")) {
    info.stored = std::exchange(info.encoding, Encoding::f32);
    info.added = 1;
  }
  return info;
}

// Splits a fused qkv tensor into q, k and v. Its rows are grouped by key and value head: the query heads that
// share it, then k, then v, each head_dim rows.
Result<std::vector<TensorInfo>> split_qkv(const TensorInfo& fused, const ModelConfig& config,
                                          const std::string& origin) {
  const bool bias = fused.name.ends_with(".bias");
  const uint64_t rows = config.q_dim() + 2ull * config.kv_dim();
  if (const uint64_t found = bias ? fused.cols : fused.rows; found != rows) {
    return Error{Code::corrupt, origin,
                 fmt::format("{} rows, expected {}: q, k and v together by the configuration", found, rows)};
  }
  const uint64_t head_bytes = fused.bytes() / rows * config.head_dim;
  const uint32_t queries = config.n_heads / config.n_kv_heads;
  std::vector<TensorInfo> parts;
  uint64_t head = 0;  // head within its group
  for (const auto& [name, heads] : {std::pair{"q", queries}, std::pair{"k", 1u}, std::pair{"v", 1u}}) {
    TensorInfo& part = parts.emplace_back(fused);
    const size_t at = part.name.find("qkv");
    part.name.replace(at, std::string_view("qkv").size(), name);
    (bias ? part.cols : part.rows) = uint64_t{config.n_kv_heads} * heads * config.head_dim;
    part.offset += head * head_bytes;
    part.run_bytes = heads * head_bytes;
    part.run_stride = (queries + 2) * head_bytes;
    head += heads;
  }
  return parts;
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
Status add_file(const std::string& path, const std::vector<std::string>* wanted, SourceParts& parts) {
  TIERD_ASSIGN(File file, File::open(path));
  TIERD_ASSIGN(const auto tensors, read_safetensors_header(file));
  const auto index = static_cast<uint32_t>(parts.files.size());
  const auto add = [&](const SafetensorsTensor& tensor) -> Status {
    if (is_redundant(tensor.name)) return {};
    TIERD_ASSIGN(TensorInfo info, as_tensor(tensor, parts.config, file, index));
    const bool fused = info.name.ends_with(".qkv") || info.name.ends_with(".qkv.bias");
    if (!fused || info.bytes() == 0) {
      parts.tensors.push_back(std::move(info));
      return {};
    }
    TIERD_ASSIGN(std::vector<TensorInfo> split, split_qkv(info, parts.config, origin_of(tensor, file)));
    for (TensorInfo& part : split) parts.tensors.push_back(std::move(part));
    return {};
  };
  if (wanted == nullptr) {
    for (const SafetensorsTensor& tensor : tensors) TIERD_TRY(add(tensor));
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
      TIERD_TRY(add(*found->second));
    }
  }
  parts.files.push_back(std::move(file));
  return {};
}

Status add_shards(const fs::path& folder, SourceParts& parts) {
  const std::string index_path = folder / kIndexFile;
  TIERD_ASSIGN(const auto shards, read_index(index_path));
  parts.companions.push_back(index_path);
  for (const auto& [name, tensors] : shards) TIERD_TRY(add_file(folder / name, &tensors, parts));
  return {};
}

Status add_weights(const fs::path& folder, const std::string& weights, SourceParts& parts) {
  if (!weights.empty()) return add_file(folder / weights, nullptr, parts);
  if (file_exists(folder / kSingleFile)) return add_file(folder / kSingleFile, nullptr, parts);
  if (file_exists(folder / kIndexFile)) return add_shards(folder, parts);
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
  TIERD_TRY(add_weights(root, weights, parts));
  untie_saved_head(config_path, parts);

  TIERD_ASSIGN(FoundVocab found, find_hf_vocab(folder, parts.config.vocab_size, options));
  parts.vocab = std::move(found.vocab);
  parts.companions.insert(parts.companions.end(), found.files.begin(), found.files.end());
  return make_file_source(std::move(parts));
}

}  // namespace tierd
