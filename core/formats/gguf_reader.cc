#include "core/formats/gguf_reader.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "core/formats/file_source.h"
#include "core/formats/gguf_families.h"
#include "core/formats/gguf_header.h"
#include "core/formats/gguf_names.h"
#include "core/formats/gguf_rope.h"
#include "core/formats/gguf_tensors.h"
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
  const std::string values_key = prefix + "attention.value_length";
  TIERD_ASSIGN(const uint32_t of_values, header.u32(values_key, c.head_dim));
  if (of_values == c.head_dim) return {};
  return header.error(Code::unsupported, values_key,
                      fmt::format("found {}, supported is the head's {}", of_values, c.head_dim));
}

// Reads the facts that only the list of tensors shows: biases, a separate head and rotary divisors.
Status read_from_tensors(const std::vector<Shard>& shards, ModelConfig& c) {
  c.qkv_bias = find(shards, "blk.0.attn_q.bias") != nullptr;
  c.o_bias = find(shards, "blk.0.attn_output.bias") != nullptr;
  c.ffn_bias =
      find(shards, "blk.0.ffn_down.bias") != nullptr || find(shards, "blk.0.ffn_down_exps.bias") != nullptr;
  c.tied_embeddings = find(shards, "output.weight") == nullptr;
  // Only the largest GLM 4.5 has these norms; that other families have them follows from their name.
  if (c.architecture == "glm4moe") c.qk_norm = find(shards, "blk.0.attn_q_norm.weight") != nullptr;
  const std::string& path = shards[0].file.path();
  const GgufTensor* embed = find(shards, "token_embd.weight");
  if (embed == nullptr) return Error{Code::corrupt, path, "the tensor \"token_embd.weight\" is missing"};
  if (embed->rows > UINT32_MAX) {
    return Error{Code::corrupt, path, fmt::format("\"token_embd.weight\" has {} rows", embed->rows)};
  }
  c.vocab_size = static_cast<uint32_t>(embed->rows);

  return {};
}

// Reads a vector of divisors of rotary frequencies; empty if the file has none.
Result<std::vector<float>> read_divisors(const std::vector<Shard>& shards, std::string_view name,
                                         uint32_t count) {
  std::vector<float> values;
  for (const Shard& shard : shards) {
    const GgufTensor* divisors = shard.header.find(name);
    if (divisors == nullptr) continue;
    if (divisors->encoding != Encoding::f32 || divisors->rows != 1 || divisors->cols != count) {
      return Error{Code::corrupt, fmt::format("{}: tensor \"{}\"", shard.file.path(), name),
                   fmt::format("{} x {} in {}, expected {} values in f32", divisors->rows, divisors->cols,
                               tierd::name(divisors->encoding), count)};
    }
    values.resize(count);
    TIERD_TRY(shard.file.read_exact(divisors->offset, std::as_writable_bytes(std::span(values))));
  }
  return values;
}

// The divisors of short and of long contexts mean longrope; a file with one list has the same for both.
Status read_rope_tensors(const std::vector<Shard>& shards, ModelConfig& c) {
  const uint32_t pairs = c.rotary_dim() / 2;
  TIERD_ASSIGN(c.rope.divisors, read_divisors(shards, kGgufRopeDivisors, pairs));
  TIERD_ASSIGN(std::vector<float> shorter, read_divisors(shards, kGgufShortDivisors, pairs));
  TIERD_ASSIGN(c.rope.long_divisors, read_divisors(shards, kGgufLongDivisors, pairs));
  if (shorter.empty() && c.rope.long_divisors.empty()) return {};
  if (c.rope.scaling != RopeScaling::none && c.rope.scaling != RopeScaling::longrope) {
    return Error{
        Code::unsupported, shards[0].file.path(),
        fmt::format("the tensor \"{}\" beside rope scaling {}", kGgufShortDivisors, name(c.rope.scaling))};
  }
  c.rope.scaling = RopeScaling::longrope;
  c.rope.divisors = std::move(shorter);
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
  TIERD_ASSIGN(const uint32_t blocks, header.u32(prefix + "block_count"));
  TIERD_ASSIGN(c.d_model, header.u32(prefix + "embedding_length"));
  const std::string further_key = prefix + std::string(kGgufFurtherLayers);
  TIERD_ASSIGN(const uint32_t further, header.u32(further_key, 0));
  if (further > blocks) {
    return header.error(Code::corrupt, further_key,
                        fmt::format("found {}, of {} layers in all", further, blocks));
  }
  c.n_layers = blocks - further;
  TIERD_ASSIGN(c.d_ff, header.u32_of_layers(shards[0].file, prefix + "feed_forward_length", c.n_layers));
  TIERD_ASSIGN(c.context_length, header.u32(prefix + "context_length"));
  TIERD_ASSIGN(c.sliding_window, header.u32(prefix + "attention.sliding_window", 0));
  TIERD_TRY(read_heads(shards[0], prefix, c));
  TIERD_TRY(read_gguf_family(header, c));
  if (c.norm == Norm::rms) {
    TIERD_ASSIGN(c.norm_eps, header.f32(prefix + "attention.layer_norm_rms_epsilon"));
  }
  TIERD_TRY(read_gguf_rope(header, prefix, c));
  TIERD_TRY(read_from_tensors(shards, c));
  TIERD_TRY(read_rope_tensors(shards, c));
  TIERD_TRY(validate(c, path));
  return c;
}

// Lists the tensors of all shards.
Status add_tensors(const std::vector<Shard>& shards, SourceParts& parts) {
  const std::string key = parts.config.architecture + "." + std::string(kGgufFurtherLayers);
  TIERD_ASSIGN(const uint32_t further, shards[0].header.u32(key, 0));
  GgufTensors into(parts, further);
  for (uint32_t i = 0; i < shards.size(); ++i) {
    for (const GgufTensor& tensor : shards[i].header.tensors())
      TIERD_TRY(into.add(tensor, shards[i].file.path(), i));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TensorSource>> open_gguf(File file, const ModelFileOptions& options) {
  TIERD_ASSIGN(std::vector<Shard> shards, open_shards(std::move(file)));
  SourceParts parts;
  parts.path = shards[0].file.path();
  TIERD_ASSIGN(parts.config, read_config(shards));
  TIERD_TRY(add_tensors(shards, parts));
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
