#include "core/formats/gguf_reader.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "core/formats/file_source.h"
#include "core/formats/gguf_families.h"
#include "core/formats/gguf_header.h"
#include "core/formats/gguf_names.h"
#include "core/formats/gguf_vocab.h"
#include "core/formats/vocab_files.h"

namespace tierd {
namespace {

constexpr uint32_t kMaxShards = 1000;

struct Shard {
  File file;
  GgufHeader header;
};

const GgufTensor* find(const std::vector<Shard>& shards, std::string_view name) {
  for (const Shard& shard : shards) {
    if (const GgufTensor* tensor = shard.header.find(name)) return tensor;
  }
  return nullptr;
}

Result<Shard> open_shard(File file) {
  TIERD_ASSIGN(GgufHeader header, GgufHeader::read(file));
  return Shard{std::move(file), std::move(header)};
}

Status check_shard(const Shard& shard, uint32_t number, uint32_t count) {
  TIERD_ASSIGN(const uint32_t found_number, shard.header.u32("split.no", 0));
  if (found_number != number) {
    return shard.header.error(number == 0 ? Code::invalid_argument : Code::corrupt, "split.no",
                              fmt::format("this is shard {}, expected shard {}{}", found_number + 1,
                                          number + 1, number == 0 ? ": open the first one" : ""));
  }
  TIERD_ASSIGN(const uint32_t found_count, shard.header.u32("split.count", 1));
  if (found_count != count) {
    return shard.header.error(Code::corrupt, "split.count",
                              fmt::format("found {}, the first shard says {}", found_count, count));
  }
  return {};
}

// Opens all shards; the first one names the others.
Result<std::vector<Shard>> open_shards(File file) {
  std::vector<Shard> shards;
  TIERD_ASSIGN(Shard first, open_shard(std::move(file)));
  shards.push_back(std::move(first));
  const std::string path = shards[0].file.path();
  TIERD_ASSIGN(const uint32_t count, shards[0].header.u32("split.count", 1));
  if (count == 0 || count > kMaxShards) {
    return shards[0].header.error(Code::corrupt, "split.count",
                                  fmt::format("found {}, expected 1 to {}", count, kMaxShards));
  }
  TIERD_TRY(check_shard(shards[0], 0, count));
  if (count == 1) return shards;

  const std::string ending = fmt::format("-00001-of-{:05}.gguf", count);
  if (!path.ends_with(ending)) {
    return shards[0].header.error(
        Code::corrupt, "split.count",
        fmt::format("{} shards, so the file's name should end in {}", count, ending));
  }
  const std::string stem = path.substr(0, path.size() - ending.size());
  uint64_t n_tensors = shards[0].header.tensors().size();
  for (uint32_t i = 1; i < count; ++i) {
    TIERD_ASSIGN(File next, File::open(fmt::format("{}-{:05}-of-{:05}.gguf", stem, i + 1, count)));
    TIERD_ASSIGN(Shard shard, open_shard(std::move(next)));
    TIERD_TRY(check_shard(shard, i, count));
    n_tensors += shard.header.tensors().size();
    shards.push_back(std::move(shard));
  }
  TIERD_ASSIGN(const uint32_t expected, shards[0].header.u32("split.tensors.count"));
  if (n_tensors != expected) {
    return shards[0].header.error(Code::corrupt, "split.tensors.count",
                                  fmt::format("found {}, the shards have {}", expected, n_tensors));
  }
  return shards;
}

// Refuses keys about positions that are not read here: ignoring them would change the results.
Status check_rope_keys(const GgufHeader& header, const std::string& prefix) {
  constexpr std::array kKnown = {"freq_base",
                                 "freq_base_swa",
                                 "dimension_count",
                                 "scale_linear",
                                 "scaling.type",
                                 "scaling.factor",
                                 "scaling.original_context_length",
                                 "scaling.attn_factor",
                                 "scaling.finetuned"};
  for (const std::string& key : header.keys(prefix + "rope.")) {
    const std::string_view name =
        std::string_view(key).substr(prefix.size() + std::string_view("rope.").size());
    if (std::ranges::find(kKnown, name) == kKnown.end())
      return header.error(Code::unsupported, key, "this rotary setting is not supported");
  }
  const std::string attention_key = prefix + "rope.scaling.attn_factor";
  TIERD_ASSIGN(const float attention, header.f32(attention_key, 1.0f));
  if (attention == 1.0f) return {};
  return header.error(Code::unsupported, attention_key, fmt::format("found {}, supported is 1", attention));
}

Status read_rope(const GgufHeader& header, const std::string& prefix, Rope& rope) {
  TIERD_TRY(check_rope_keys(header, prefix));
  TIERD_ASSIGN(rope.theta, header.f32(prefix + "rope.freq_base", rope.theta));
  const std::string type_key = prefix + "rope.scaling.type";
  TIERD_ASSIGN(const float old_factor, header.f32(prefix + "rope.scale_linear", 1.0f));
  TIERD_ASSIGN(const float factor, header.f32(prefix + "rope.scaling.factor", old_factor));
  // A factor alone means linear, as in llama.cpp.
  TIERD_ASSIGN(const std::string type, header.text(type_key, "linear"));
  if (type == "none") return {};
  if (type != "linear") {
    return header.error(Code::unsupported, type_key,
                        fmt::format("\"{}\", supported are none and linear", type));
  }
  if (factor == 0.0f || factor == 1.0f) return {};  // llama.cpp's converters write "none" like this
  rope.scaling = RopeScaling::linear;
  rope.factor = factor;
  return {};
}

Status read_heads(const Shard& shard, const std::string& prefix, ModelConfig& c) {
  const auto& [file, header] = shard;
  const std::string heads_key = prefix + "attention.head_count";
  TIERD_ASSIGN(c.n_heads, header.u32_of_layers(file, heads_key, c.n_layers));
  TIERD_ASSIGN(c.n_kv_heads,
               header.u32_of_layers(file, prefix + "attention.head_count_kv", c.n_layers, c.n_heads));
  const std::string dim_key = prefix + "attention.key_length";
  if (!header.has(dim_key) && (c.n_heads == 0 || c.d_model % c.n_heads != 0)) {
    return header.error(Code::corrupt, heads_key,
                        fmt::format("found {}, which does not divide the width {}", c.n_heads, c.d_model));
  }
  TIERD_ASSIGN(c.head_dim, header.u32(dim_key, c.n_heads == 0 ? 0 : c.d_model / c.n_heads));
  for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
    TIERD_ASSIGN(const uint32_t dim, header.u32(prefix + name, c.head_dim));
    if (dim != c.head_dim) {
      return header.error(Code::unsupported, prefix + name,
                          fmt::format("found {}, supported is the head's {}", dim, c.head_dim));
    }
  }
  return {};
}

// Reads the facts that only the list of tensors shows: biases, a separate head and rotary divisors.
Status read_from_tensors(const std::vector<Shard>& shards, ModelConfig& c) {
  c.qkv_bias = find(shards, "blk.0.attn_q.bias") != nullptr;
  c.o_bias = find(shards, "blk.0.attn_output.bias") != nullptr;
  c.ffn_bias = find(shards, "blk.0.ffn_down.bias") != nullptr;
  c.tied_embeddings = find(shards, "output.weight") == nullptr;
  const std::string& path = shards[0].file.path();
  const GgufTensor* embed = find(shards, "token_embd.weight");
  if (embed == nullptr) return Error{Code::corrupt, path, "the tensor \"token_embd.weight\" is missing"};
  if (embed->rows > UINT32_MAX) {
    return Error{Code::corrupt, path, fmt::format("\"token_embd.weight\" has {} rows", embed->rows)};
  }
  c.vocab_size = static_cast<uint32_t>(embed->rows);

  for (const Shard& shard : shards) {
    const GgufTensor* divisors = shard.header.find(kGgufRopeDivisors);
    if (divisors == nullptr) continue;
    if (divisors->encoding != Encoding::f32 || divisors->rows != 1 || divisors->cols != c.head_dim / 2) {
      return Error{Code::corrupt, fmt::format("{}: tensor \"{}\"", shard.file.path(), kGgufRopeDivisors),
                   fmt::format("{} x {} in {}, expected {} values in f32", divisors->rows, divisors->cols,
                               name(divisors->encoding), c.head_dim / 2)};
    }
    c.rope.divisors.resize(divisors->cols);
    TIERD_TRY(shard.file.read_exact(divisors->offset, std::as_writable_bytes(std::span(c.rope.divisors))));
  }
  return {};
}

Result<ModelConfig> read_config(const std::vector<Shard>& shards) {
  const GgufHeader& header = shards[0].header;
  const std::string& path = shards[0].file.path();
  ModelConfig c;
  TIERD_ASSIGN(c.architecture, header.text("general.architecture"));
  TIERD_TRY(check_gguf_family(header, c.architecture));
  const std::string prefix = c.architecture + ".";
  TIERD_ASSIGN(c.name, header.text("general.name", std::filesystem::path(path).stem().string()));
  TIERD_ASSIGN(c.n_layers, header.u32(prefix + "block_count"));
  TIERD_ASSIGN(c.d_model, header.u32(prefix + "embedding_length"));
  TIERD_ASSIGN(c.d_ff, header.u32_of_layers(shards[0].file, prefix + "feed_forward_length", c.n_layers));
  TIERD_ASSIGN(c.context_length, header.u32(prefix + "context_length"));
  TIERD_ASSIGN(c.sliding_window, header.u32(prefix + "attention.sliding_window", 0));
  TIERD_TRY(read_heads(shards[0], prefix, c));
  TIERD_TRY(read_gguf_family(header, c));
  if (c.norm == Norm::rms) {
    TIERD_ASSIGN(c.norm_eps, header.f32(prefix + "attention.layer_norm_rms_epsilon"));
  }
  TIERD_TRY(read_rope(header, prefix, c.rope));
  TIERD_TRY(read_from_tensors(shards, c));
  TIERD_TRY(validate(c, path));
  return c;
}

// Adds one tensor for each expert.
Status split_experts(const std::string& path, const GgufTensor& tensor, const std::string& part,
                     const ModelConfig& config, uint32_t file, std::vector<TensorInfo>& tensors) {
  if (tensor.matrices != config.n_experts) {
    return Error{Code::corrupt, fmt::format("{}: tensor \"{}\"", path, tensor.name),
                 fmt::format("{} matrices, the model has {} experts", tensor.matrices, config.n_experts)};
  }
  const uint64_t rows = tensor.rows / tensor.matrices;
  const uint64_t bytes = encoded_bytes(tensor.encoding, rows * tensor.cols);
  for (uint32_t expert = 0; expert < config.n_experts; ++expert) {
    std::string name = part;
    name.replace(name.find('*'), 1, std::to_string(expert));
    tensors.push_back(
        {std::move(name), tensor.encoding, rows, tensor.cols, file, tensor.offset + expert * bytes});
  }
  return {};
}

// Lists the tensors. A tensor of the architecture gets tierd's name; any other keeps its own, for the error.
Result<std::vector<TensorInfo>> list_tensors(const std::vector<Shard>& shards, const ModelConfig& config) {
  std::unordered_map<std::string, std::string> names;  // GGUF's name -> tierd's
  for (const TensorSpec& spec : required_tensors(config))
    names.emplace(gguf_name(spec.name).value_or(spec.name), spec.name);
  std::vector<TensorInfo> tensors;
  for (uint32_t i = 0; i < shards.size(); ++i) {
    for (const GgufTensor& tensor : shards[i].header.tensors()) {
      if (tensor.name == kGgufRopeDivisors) continue;
      if (const auto part = gguf_experts_part(tensor.name); part && config.is_mixture()) {
        TIERD_TRY(split_experts(shards[i].file.path(), tensor, *part, config, i, tensors));
        continue;
      }
      const auto ours = names.find(tensor.name);
      tensors.push_back({ours == names.end() ? tensor.name : ours->second, tensor.encoding, tensor.rows,
                         tensor.cols, i, tensor.offset});
    }
  }
  return tensors;
}

}  // namespace

Result<std::unique_ptr<TensorSource>> open_gguf(File file, const ModelFileOptions& options) {
  TIERD_ASSIGN(std::vector<Shard> shards, open_shards(std::move(file)));
  SourceParts parts;
  parts.path = shards[0].file.path();
  TIERD_ASSIGN(parts.config, read_config(shards));
  TIERD_ASSIGN(parts.tensors, list_tensors(shards, parts.config));
  TIERD_ASSIGN(FoundVocab chosen, read_chosen_vocab(parts.config.vocab_size, options));
  parts.companions = std::move(chosen.files);
  parts.vocab = std::move(chosen.vocab);
  if (!parts.vocab) {
    TIERD_ASSIGN(parts.vocab, read_gguf_vocab(shards[0].file, shards[0].header, parts.config.vocab_size));
  }
  for (Shard& shard : shards) parts.files.push_back(std::move(shard.file));
  return make_file_source(std::move(parts));
}

}  // namespace tierd
