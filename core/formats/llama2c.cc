#include "core/formats/llama2c.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "core/formats/file_source.h"
#include "core/formats/vocab_files.h"

namespace tierd {
namespace {

constexpr uint32_t kLlama2cMagic = 0x616b3432;  // "ak42" as a number
constexpr uint64_t kVersion0Header = 28;
constexpr uint64_t kVersion1Header = 256;
constexpr uint64_t kVersion1Shape = 8;    // offset of the seven integers
constexpr uint64_t kVersion1Shared = 36;  // offset of the byte "the head is the embedding"

// The shape as stored in the file, in its order.
struct Shape {
  int32_t dim;
  int32_t hidden_dim;
  int32_t n_layers;
  int32_t n_heads;
  int32_t n_kv_heads;
  int32_t vocab_size;  // version 0: negative if the head is not the embedding
  int32_t context_length;
};
static_assert(sizeof(Shape) == 28);

template <class T>
Result<T> read_at(const File& file, uint64_t offset) {
  T value{};
  TIERD_TRY(file.read_exact(offset, std::as_writable_bytes(std::span(&value, 1))));
  return value;
}

struct Header {
  uint32_t version = 0;
  ModelConfig config;
  uint64_t bytes = kVersion0Header;
};

Result<ModelConfig> config_of(Shape shape, bool shared_head, const std::string& origin) {
  const std::array fields = {shape.dim,        shape.hidden_dim, shape.n_layers,      shape.n_heads,
                             shape.n_kv_heads, shape.vocab_size, shape.context_length};
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] <= 0) {
      return Error{Code::corrupt, origin,
                   fmt::format("number {} of the header's shape is {}, expected more than 0", i, fields[i])};
    }
  }
  if (shape.dim % shape.n_heads != 0) {
    return Error{Code::corrupt, origin,
                 fmt::format("a width of {} cannot be shared by {} heads", shape.dim, shape.n_heads)};
  }
  ModelConfig c;
  c.architecture = "llama";
  c.d_model = static_cast<uint32_t>(shape.dim);
  c.d_ff = static_cast<uint32_t>(shape.hidden_dim);
  c.n_layers = static_cast<uint32_t>(shape.n_layers);
  c.n_heads = static_cast<uint32_t>(shape.n_heads);
  c.n_kv_heads = static_cast<uint32_t>(shape.n_kv_heads);
  c.head_dim = c.d_model / c.n_heads;
  c.vocab_size = static_cast<uint32_t>(shape.vocab_size);
  c.context_length = static_cast<uint32_t>(shape.context_length);
  c.position = PositionKind::rope_interleaved;
  c.tied_embeddings = shared_head;
  TIERD_TRY(validate(c, origin));
  return c;
}

Result<Header> read_header(const File& file) {
  TIERD_ASSIGN(const uint32_t magic, read_at<uint32_t>(file, 0));
  Header header;
  if (magic != kLlama2cMagic) {
    TIERD_ASSIGN(Shape shape, read_at<Shape>(file, 0));
    const bool shared_head = shape.vocab_size > 0;
    if (!shared_head && shape.vocab_size != INT32_MIN) shape.vocab_size = -shape.vocab_size;
    TIERD_ASSIGN(header.config, config_of(shape, shared_head, file.path()));
    return header;
  }
  TIERD_ASSIGN(header.version, read_at<uint32_t>(file, 4));
  if (header.version != 1) {
    return Error{Code::unsupported, file.at(4),
                 fmt::format("llama2.c version {}{}, supported are 0 and 1", header.version,
                             header.version == 2 ? " (int8)" : "")};
  }
  TIERD_ASSIGN(const Shape shape, read_at<Shape>(file, kVersion1Shape));
  TIERD_ASSIGN(const uint8_t shared_head, read_at<uint8_t>(file, kVersion1Shared));
  TIERD_ASSIGN(header.config, config_of(shape, shared_head != 0, file.path()));
  header.bytes = kVersion1Header;
  return header;
}

// Lists the tensors with their offsets, in the order of the file.
class FileLayout {
 public:
  explicit FileLayout(const Header& header) : config_(header.config), offset_(header.bytes) {
    header.version == 0 ? version_0() : version_1();
  }
  std::vector<TensorInfo> take() { return std::move(tensors_); }
  uint64_t end() const { return offset_; }

 private:
  void tensor(std::string name, uint64_t rows, uint64_t cols) {
    tensors_.push_back({std::move(name), Encoding::f32, rows, cols, 0, offset_});
    offset_ += tensors_.back().bytes();
  }
  void each_layer(const char* name, uint64_t rows, uint64_t cols) {
    for (uint32_t i = 0; i < config_.n_layers; ++i) tensor(fmt::format("layers.{}.{}", i, name), rows, cols);
  }
  void attention() {
    each_layer("q", config_.q_dim(), config_.d_model);
    each_layer("k", config_.kv_dim(), config_.d_model);
    each_layer("v", config_.kv_dim(), config_.d_model);
    each_layer("o", config_.d_model, config_.q_dim());
  }
  void feed_forward() {
    each_layer("gate", config_.d_ff, config_.d_model);
    each_layer("down", config_.d_model, config_.d_ff);
    each_layer("up", config_.d_ff, config_.d_model);
  }
  void head() {
    if (!config_.tied_embeddings) tensor("head", config_.vocab_size, config_.d_model);
  }

  void version_0() {
    tensor("embed", config_.vocab_size, config_.d_model);
    each_layer("attn_norm", 1, config_.d_model);
    attention();
    each_layer("ffn_norm", 1, config_.d_model);
    feed_forward();
    tensor("out_norm", 1, config_.d_model);
    // Tables of the rotary embedding's cosines and sines, which follow from the configuration.
    offset_ += encoded_bytes(Encoding::f32, uint64_t{config_.context_length} * config_.head_dim);
    head();
  }
  void version_1() {
    each_layer("attn_norm", 1, config_.d_model);
    each_layer("ffn_norm", 1, config_.d_model);
    tensor("out_norm", 1, config_.d_model);
    tensor("embed", config_.vocab_size, config_.d_model);
    attention();
    feed_forward();
    head();
  }

  const ModelConfig& config_;
  uint64_t offset_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

bool looks_like_llama2c(const File& file) {
  const auto magic = read_at<uint32_t>(file, 0);
  if (magic.ok() && *magic == kLlama2cMagic) return true;
  const auto header = read_header(file);
  return header.ok();
}

Result<std::unique_ptr<TensorSource>> open_llama2c(File file, const ModelFileOptions& options) {
  TIERD_ASSIGN(Header header, read_header(file));
  FileLayout layout(header);
  if (layout.end() != file.size_bytes()) {
    return Error{Code::corrupt, file.path(),
                 fmt::format("{} bytes, a llama2.c checkpoint (version {}) of its shape has {}",
                             file.size_bytes(), header.version, layout.end())};
  }
  SourceParts parts;
  parts.path = file.path();
  parts.tensors = layout.take();
  TIERD_ASSIGN(FoundVocab found, find_llama2c_vocab(file.path(), header.config.vocab_size, options));
  parts.vocab = std::move(found.vocab);
  parts.companions = std::move(found.files);
  parts.config = std::move(header.config);
  parts.config.name = std::filesystem::path(file.path()).stem();
  parts.files.push_back(std::move(file));
  return make_file_source(std::move(parts));
}

}  // namespace tierd
