#include "core/formats/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/base/disk.h"
#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/formats/gguf_names.h"
#include "core/model/layout/codec.h"
#include "core/model/sound_values.h"

namespace tierd {
namespace {

static_assert(std::endian::native == std::endian::little);

// ggml docs/gguf.md
constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;
constexpr uint64_t kChunkBytes = 8 << 20;
enum class ValueType : uint32_t { u32 = 4, i32 = 5, f32 = 6, boolean = 7, string = 8, array = 9 };

// [encodings] The number of a tensor's type, and general.file_type of a file whose weights mostly have it.
struct TypeNumbers {
  uint32_t tensor, file;
};
constexpr std::array<TypeNumbers, kAllEncodings.size()> kTypes = {{{0, 0},
                                                                   {1, 1},
                                                                   {30, 32},
                                                                   {8, 7},
                                                                   {2, 2},
                                                                   {12, 14},
                                                                   {13, 16},
                                                                   {14, 18},
                                                                   {3, 3},
                                                                   {6, 8},
                                                                   {7, 9},
                                                                   {10, 10},
                                                                   {11, 12},
                                                                   {20, 25},
                                                                   {23, 30},
                                                                   {39, 38}}};

const TypeNumbers& type_of(Encoding encoding) {
  return kTypes[static_cast<size_t>(encoding)];
}

class Bytes {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put_string(std::string_view text) {
    put<uint64_t>(text.size());
    text_ += text;
  }
  void append(const Bytes& other) { text_ += other.text_; }
  void pad_to(uint64_t alignment) { text_.resize(align_up(text_.size(), alignment)); }
  uint64_t size() const { return text_.size(); }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(text_)); }

 private:
  std::string text_;
};

class Metadata {
 public:
  void add(std::string_view key, uint32_t value) { begin(key, ValueType::u32).put(value); }
  void add(std::string_view key, float value) { begin(key, ValueType::f32).put(value); }
  void add(std::string_view key, std::string_view value) { begin(key, ValueType::string).put_string(value); }
  void add_bool(std::string_view key, bool value) {
    begin(key, ValueType::boolean).put(static_cast<uint8_t>(value));
  }
  template <class T>
  void add_array(std::string_view key, ValueType type, const std::vector<T>& values) {
    Bytes& out = begin(key, ValueType::array);
    out.put(type);
    out.put<uint64_t>(values.size());
    for (const T& value : values) {
      if constexpr (std::is_same_v<T, std::string>) {
        out.put_string(value);
      } else {
        out.put(value);
      }
    }
  }
  uint64_t count() const { return count_; }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes& begin(std::string_view key, ValueType type) {
    ++count_;
    bytes_.put_string(key);
    bytes_.put(type);
    return bytes_;
  }

  Bytes bytes_;
  uint64_t count_ = 0;
};

// Returns GGUF's architecture name, from which llama.cpp derives the layout of rotary pairs. Error:
// unsupported for a model that GGUF cannot describe.
Result<std::string> gguf_architecture(const TensorSource& source) {
  const ModelConfig& config = source.config();
  const auto unsupported = [&](std::string detail) {
    return Error{Code::unsupported, source.path(), std::move(detail)};
  };
  // llama.cpp's Mixtral is "llama" with experts.
  const bool mixtral = config.architecture == "mixtral";
  const bool llama = config.architecture == "llama" || config.architecture == "mistral" || mixtral;
  if (!llama && config.architecture != "qwen2") {
    return unsupported(
        fmt::format("architecture '{}' cannot be written as GGUF; expected llama, mistral, mixtral or qwen2",
                    config.architecture));
  }
  const bool turns = config.position == PositionKind::rope_half ||
                     (llama && config.position == PositionKind::rope_interleaved);
  if (!turns)
    return unsupported(
        "its kind of positions cannot be written as GGUF; expected rotary positions of the architecture");
  if (config.rope.scaling != RopeScaling::none && config.rope.scaling != RopeScaling::linear) {
    return unsupported(fmt::format("rope scaling {} cannot be written as GGUF; expected none or linear",
                                   name(config.rope.scaling)));
  }
  if (!has_plain_layers(config) || config.norm != Norm::rms || config.activation != Activation::silu ||
      !config.gated || config.o_bias || config.ffn_bias || config.head_bias || config.qkv_bias == llama ||
      config.parallel || config.qk_norm || config.rotary_dim() != config.head_dim ||
      config.is_mixture() != config.expert_weights_sum_to_one) {
    return unsupported(
        fmt::format("the model differs from a usual {} in norm, activation, biases or attention, and GGUF "
                    "has no keys for that",
                    config.architecture));
  }
  return std::string(llama ? "llama" : "qwen2");
}

void add_model(Metadata& out, const ModelConfig& config, const std::string& architecture, Encoding encoding) {
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", architecture, name); };
  out.add("general.architecture", architecture);
  out.add("general.name", config.name);
  out.add("general.file_type", type_of(encoding).file);
  out.add("general.quantization_version", uint32_t{2});
  out.add(key("vocab_size"), config.vocab_size);
  out.add(key("block_count"), config.n_layers);
  out.add(key("context_length"), config.context_length);
  out.add(key("embedding_length"), config.d_model);
  out.add(key("feed_forward_length"), config.d_ff);
  out.add(key("attention.head_count"), config.n_heads);
  out.add(key("attention.head_count_kv"), config.n_kv_heads);
  out.add(key("attention.key_length"), config.head_dim);
  out.add(key("attention.value_length"), config.head_dim);
  out.add(key("attention.layer_norm_rms_epsilon"), config.norm_eps);
  if (config.is_mixture()) {
    out.add(key("expert_count"), config.n_experts);
    out.add(key("expert_used_count"), config.experts_per_token);
  }
  if (config.sliding_window != 0) out.add(key("attention.sliding_window"), config.sliding_window);
  out.add(key("rope.dimension_count"), config.head_dim);
  out.add(key("rope.freq_base"), config.rope.theta);
  if (config.rope.scaling == RopeScaling::linear) {
    out.add(key("rope.scaling.type"), std::string_view("linear"));
    out.add(key("rope.scaling.factor"), config.rope.factor);
  }
}

// Warns of rules that only a tokenizer.json can express: without them some texts get other token ids.
void warn_of_lost_rules(const Vocab& vocab, const std::string& path) {
  const auto has_rule = [](const AddedToken& added) {
    return added.lstrip || added.rstrip || added.single_word;
  };
  const auto& added = vocab.added_tokens;
  if (added && std::any_of(added->begin(), added->end(), has_rule))
    say_once(path +
             ": the rules lstrip, rstrip and single_word of added tokens are left out, because GGUF has no "
             "keys for them");
  if (!vocab.normalizers.empty())
    say_once(path + ": the normalizer NFC is left out, because GGUF has no key for it");
  if (vocab.metaspace || vocab.prefix_text_only || vocab.split_at_spaces)
    say_once(path +
             ": the rules of Metaspace are left out, because GGUF has no keys for them; spaces are tokenized "
             "as sentencepiece does");
}

// Programs that read GGUF do not compose text; nearly all text is composed already.
const std::vector<TextStep> kOnlyNfc = {{.kind = TextStepKind::nfc}};

// Refuses a tokenizer that GGUF has no name for.
Status check_vocab(const Vocab& vocab, const std::string& path) {
  const bool normalizes = !vocab.normalizers.empty() && vocab.normalizers != kOnlyNfc;
  if (vocab.kind != VocabKind::ranked_bpe && vocab.cuts.empty() && vocab.after_bos.empty() && !normalizes)
    return {};
  return Error{Code::unsupported, path,
               "GGUF has no name for the steps of this tokenizer; use a store, which keeps them"};
}

void add_vocab(Metadata& out, const Vocab& vocab) {
  const bool sentencepiece = vocab.kind == VocabKind::sentencepiece_bpe;
  out.add("tokenizer.ggml.model", std::string_view(sentencepiece ? "llama" : "gpt2"));
  if (!sentencepiece) out.add("tokenizer.ggml.pre", vocab.pre_tokenizer);
  out.add_array("tokenizer.ggml.tokens", ValueType::string, vocab.pieces);
  if (!vocab.scores.empty()) out.add_array("tokenizer.ggml.scores", ValueType::f32, vocab.scores);
  std::vector<int32_t> types;
  for (const TokenType type : vocab.types) types.push_back(static_cast<int32_t>(type) + 1);
  out.add_array("tokenizer.ggml.token_type", ValueType::i32, types);
  if (!vocab.merges.empty()) out.add_array("tokenizer.ggml.merges", ValueType::string, vocab.merges);
  if (vocab.bos != kNoToken) out.add("tokenizer.ggml.bos_token_id", vocab.bos);
  if (vocab.eos != kNoToken) out.add("tokenizer.ggml.eos_token_id", vocab.eos);
  if (vocab.unknown != kNoToken) out.add("tokenizer.ggml.unknown_token_id", vocab.unknown);
  out.add_bool("tokenizer.ggml.add_bos_token", vocab.add_bos);
  if (sentencepiece) out.add_bool("tokenizer.ggml.add_space_prefix", vocab.add_space_prefix);
  if (!vocab.chat_template.empty()) out.add("tokenizer.chat_template", vocab.chat_template);
  if (vocab.tool_chat_template.empty()) return;
  out.add_array("tokenizer.chat_templates", ValueType::string, std::vector<std::string>{"tool_use"});
  out.add("tokenizer.chat_template.tool_use", vocab.tool_chat_template);
}

// A tensor of the file: one of the source's, or the matrices of all experts, one behind the other.
struct WrittenTensor {
  std::string name;
  std::vector<const TensorInfo*> matrices;
};

// Lists the tensors in the order of the source; all matrices of experts with the first of them.
Result<std::vector<WrittenTensor>> written_tensors(const TensorSource& source) {
  std::vector<WrittenTensor> written;
  for (const TensorInfo& tensor : source.tensors()) {
    const auto of_experts = gguf_experts_name(tensor.name);
    const auto name = of_experts ? of_experts : gguf_name(tensor.name);
    TIERD_CHECK_MSG(name.has_value(), tensor.name);
    const auto same = std::ranges::find(written, *name, &WrittenTensor::name);
    if (same == written.end()) {
      written.push_back({*name, {&tensor}});
      continue;
    }
    if (same->matrices.front()->encoding != tensor.encoding) {
      return Error{
          Code::unsupported, source.path(),
          fmt::format("{} is {}, other experts are {}; GGUF needs one encoding for all experts of a layer",
                      tensor.name, tierd::name(tensor.encoding),
                      tierd::name(same->matrices.front()->encoding))};
    }
    same->matrices.push_back(&tensor);
  }
  return written;
}

// Returns whether the rows of each head must be reordered: Hugging Face's Llama rotates value i of a head
// with value i + head_dim/2, llama.cpp rotates neighbours.
bool lies_in_halves(const TensorSource& source, const TensorInfo& tensor) {
  return source.config().position == PositionKind::rope_half && source.config().architecture != "qwen2" &&
         (tensor.name.ends_with(".q") || tensor.name.ends_with(".k"));
}

Encoding written_encoding(const TensorInfo& tensor) {
  return tensor.rows == 1 ? Encoding::f32 : tensor.encoding;
}
uint64_t written_bytes(const TensorInfo& tensor) {
  return encoded_bytes(written_encoding(tensor), tensor.rows * tensor.cols);
}

class GgufWriter {
 public:
  GgufWriter(const TensorSource& source, OpenFile file, bool quiet)
      : source_(source), file_(std::move(file)), quiet_(quiet) {}

  // Without `weights` the file has holes in their place.
  Status write(const Metadata& metadata, bool weights) {
    TIERD_ASSIGN(const std::vector<WrittenTensor> tensors, written_tensors(source_));
    Bytes head;
    head.put(kGgufMagic);
    head.put(kVersion);
    const std::vector<float>& divisors = source_.config().rope.divisors;
    head.put<uint64_t>(tensors.size() + (divisors.empty() ? 0 : 1));
    head.put(metadata.count());
    head.append(metadata.bytes());
    uint64_t offset = 0;
    for (const auto& [name, matrices] : tensors) {
      const TensorInfo& first = *matrices.front();
      std::vector<uint64_t> extents = {first.cols};
      if (first.rows != 1) extents.push_back(first.rows);
      if (gguf_experts_part(name)) extents.push_back(matrices.size());
      head.put_string(name);
      head.put(static_cast<uint32_t>(extents.size()));
      for (const uint64_t extent : extents) head.put(extent);
      head.put(type_of(written_encoding(first)).tensor);
      head.put(offset);
      offset += align_up(matrices.size() * written_bytes(first), kAlignment);
    }
    if (!divisors.empty()) {
      head.put_string(kGgufRopeDivisors);
      head.put(uint32_t{1});
      head.put<uint64_t>(divisors.size());
      head.put(type_of(Encoding::f32).tensor);
      head.put(offset);
      offset += align_up(divisors.size() * sizeof(float), kAlignment);
    }
    head.pad_to(kAlignment);
    if (weights) TIERD_TRY(disk_.reserve(file_, head.size() + offset));
    TIERD_TRY(append(head.span()));
    if (!weights) {
      TIERD_TRY(disk_.truncate(file_, head.size() + offset));
      return disk_.sync(file_);
    }
    Progress progress("writing", offset, quiet_);
    for (const WrittenTensor& tensor : tensors) {
      for (const TensorInfo* matrix : tensor.matrices) TIERD_TRY(copy(*matrix, progress));
      TIERD_TRY(pad());
    }
    TIERD_TRY(append(std::as_bytes(std::span(divisors))));
    TIERD_TRY(pad());
    TIERD_TRY(disk_.sync(file_));
    progress.finish();
    return {};
  }

 private:
  Status append(std::span<const std::byte> bytes) {
    TIERD_TRY(disk_.write(file_, end_, bytes));
    end_ += bytes.size();
    return {};
  }

  Status pad() {
    const std::array<std::byte, kAlignment> zeros{};
    return append(std::span(zeros).first(align_up(end_, kAlignment) - end_));
  }

  Status copy(const TensorInfo& tensor, Progress& progress) {
    if (written_encoding(tensor) != tensor.encoding) {
      TIERD_ASSIGN(const std::vector<float> values, source_.read_f32(tensor));
      if (const auto lost = first_lost_value(Encoding::f32, values))
        return lost_value(source_, tensor, *lost / tensor.cols, *lost % tensor.cols, values[*lost],
                          Encoding::f32);
      progress.advance(values.size() * sizeof(float));
      return append(std::as_bytes(std::span(values)));
    }
    if (lies_in_halves(source_, tensor)) return copy_as_neighbours(tensor, progress);
    const uint64_t block = block_bytes(tensor.encoding);
    chunk_.resize(kChunkBytes / block * block);
    for (uint64_t at = 0; at < tensor.bytes(); at += chunk_.size()) {
      const auto part = std::span(chunk_).first(std::min<uint64_t>(chunk_.size(), tensor.bytes() - at));
      TIERD_TRY(source_.read(tensor, at, part));
      TIERD_TRY(expect_finite(source_, tensor, at / block * block_values(tensor.encoding), part));
      TIERD_TRY(append(part));
      progress.advance(part.size());
    }
    return {};
  }

  // Copies the rows of each head in the order 0, half, 1, half + 1, …
  Status copy_as_neighbours(const TensorInfo& tensor, Progress& progress) {
    const uint64_t row_bytes = encoded_bytes(tensor.encoding, tensor.cols);
    const uint64_t half = source_.config().head_dim / 2;
    chunk_.resize(2 * half * row_bytes);
    std::vector<std::byte> head(chunk_.size());
    for (uint64_t at = 0; at < tensor.bytes(); at += head.size()) {
      TIERD_TRY(source_.read(tensor, at, head));
      TIERD_TRY(expect_finite(source_, tensor, at / row_bytes * tensor.cols, head));
      for (uint64_t row = 0; row < 2 * half; ++row) {
        const auto from = std::span(head).subspan((row % 2 * half + row / 2) * row_bytes, row_bytes);
        std::ranges::copy(from, chunk_.begin() + static_cast<std::ptrdiff_t>(row * row_bytes));
      }
      TIERD_TRY(append(chunk_));
      progress.advance(chunk_.size());
    }
    return {};
  }

  const TensorSource& source_;
  Disk disk_;
  OpenFile file_;
  bool quiet_;
  uint64_t end_ = 0;
  std::vector<std::byte> chunk_;
};

Status write_file(const TensorSource& source, const std::string& path, bool quiet, bool weights) {
  TIERD_ASSIGN(const std::string architecture, gguf_architecture(source));
  Metadata metadata;
  add_model(metadata, source.config(), architecture, source.find("embed")->encoding);
  if (source.vocab() != nullptr) {
    TIERD_TRY(check_vocab(*source.vocab(), path));
    warn_of_lost_rules(*source.vocab(), path);
    add_vocab(metadata, *source.vocab());
  }
  Disk disk;
  const std::string partial = path + ".partial";
  TIERD_ASSIGN(OpenFile file, disk.open(partial, true));
  TIERD_TRY(GgufWriter(source, std::move(file), quiet).write(metadata, weights));
  TIERD_TRY(disk.rename(partial, path));
  TIERD_ASSIGN(const OpenFile folder, open_directory(parent_directory(path)));
  return disk.sync(folder);
}

}  // namespace

Status write_gguf(const TensorSource& source, const std::string& path, bool quiet) {
  return write_file(source, path, quiet, true);
}

Status check_gguf(const TensorSource& source) {
  TIERD_ASSIGN([[maybe_unused]] const std::string architecture, gguf_architecture(source));
  return source.vocab() == nullptr ? Status() : check_vocab(*source.vocab(), source.path());
}

Status write_hollow_gguf(const TensorSource& source, const std::string& path) {
  return write_file(source, path, true, false);
}

}  // namespace tierd
