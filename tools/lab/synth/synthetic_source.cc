#include "tools/lab/synth/synthetic_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/base/random.h"
#include "core/model/layout/block_layout.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

constexpr uint32_t kGeneratorVersion = 1;  // part of the fingerprint: raise it when the values change
constexpr float kVectorDeviation = 0.02f;  // biases and learned positions
constexpr uint32_t kByteTokens = 256;
constexpr uint32_t kFirstByteToken = 3;
constexpr uint32_t kFirstWord = kFirstByteToken + kByteTokens;

// Weights are made in blocks of 32 values, or in super-blocks, each block from its own counters.
constexpr uint32_t kBlockValues = kQuantBlock;
constexpr uint32_t kWordsPerBlock = 16;
constexpr uint32_t kLargestBlock = block_bytes(Encoding::q6_k);  // more than 32 floats
static_assert(kLargestBlock >= kBlockValues * sizeof(float));
constexpr int kExponentOfOne = 128;  // in mxfp4, whose table has doubled values

constexpr uint32_t values_made_at_once(Encoding e) {
  return std::max(block_values(e), kBlockValues);
}

// Writes a random sign, a random mantissa and one of four exponents directly as the bits of a float format,
// without rounding or conversion. The standard deviation is 0.88 * 2^exponent.
template <class Bits, int kMantissaBits, int kExponentBias>
void fill_floats(uint64_t key, uint64_t block, int exponent, std::byte* out) {
  constexpr int kBits = 8 * sizeof(Bits);
  constexpr uint32_t kPerWord = 64 / kBits;
  const auto top = static_cast<Bits>(exponent + kExponentBias);
  for (uint32_t i = 0; i < kBlockValues; i += kPerWord) {
    uint64_t word = splitmix64(key, block * kWordsPerBlock + i / kPerWord);
    for (uint32_t k = 0; k < kPerWord; ++k, word >>= kBits % 64) {
      const auto random = static_cast<Bits>(word);
      constexpr Bits kKept = static_cast<Bits>((Bits{1} << kMantissaBits) - 1) | Bits{1} << (kBits - 1);
      const auto lowered = static_cast<Bits>(top - ((random >> kMantissaBits) & 3u));
      const auto value = static_cast<Bits>((random & kKept) | static_cast<Bits>(lowered << kMantissaBits));
      std::memcpy(out + (i + k) * sizeof(Bits), &value, sizeof value);
    }
  }
}

// Writes a scale with a random sign, so that the nonzero mean of q4_0's -8 … 7 cancels along a row.
void fill_scale(uint64_t key, uint64_t block, uint16_t scale, std::byte* out) {
  const uint64_t word = splitmix64(key, block * kWordsPerBlock + kWordsPerBlock - 1);
  const auto value = static_cast<uint16_t>(scale | (word & 1) << 15);
  std::memcpy(out, &value, sizeof value);
}

void fill_q4_0(uint64_t key, uint64_t block, uint16_t scale, std::byte* out) {
  fill_scale(key, block, scale, out);
  for (uint32_t i = 0; i < 2; ++i) {
    const uint64_t word = splitmix64(key, block * kWordsPerBlock + i);
    std::memcpy(out + 2 + 8 * i, &word, sizeof word);
  }
}

void fill_q8_0(uint64_t key, uint64_t block, uint16_t scale, std::byte* out) {
  fill_scale(key, block, scale, out);
  for (uint32_t i = 0; i < 4; ++i) {
    const uint64_t word = splitmix64(key, block * kWordsPerBlock + i);
    std::memcpy(out + 2 + 8 * i, &word, sizeof word);
  }
  for (uint32_t i = 0; i < kBlockValues; ++i) {  // quantizers produce -127 … 127
    if (out[2 + i] == std::byte{0x80}) out[2 + i] = std::byte{0x81};
  }
}

// Writes random bits, which are valid in every block encoding, with uniform integers, and the scale. With a
// second factor of d * (mean of the integers), minima have the mean of the integers times their scales.
void fill_block(Encoding e, uint64_t key, uint64_t block, uint16_t scale, std::byte* out) {
  const uint32_t words = kWordsPerBlock * block_values(e) / kBlockValues;
  for (uint32_t i = 0; i < block_bytes(e); i += sizeof(uint64_t)) {
    const uint64_t word = splitmix64(key, block * words + i / sizeof(uint64_t));
    std::memcpy(out + i, &word, std::min<size_t>(sizeof word, block_bytes(e) - i));
  }
  std::byte* const factors = out + factors_at(e);
  if (e == Encoding::mxfp4) {
    *factors = static_cast<std::byte>(scale);
    return;
  }
  std::memcpy(factors, &scale, sizeof scale);
  if (!has_min(e)) return;
  const float mean = static_cast<float>((1u << code_width(e)) - 1) / 2;
  const uint16_t second = f32_to_f16(f16_to_f32(scale) * (has_scales(e) ? mean : -mean));
  std::memcpy(factors + sizeof scale, &second, sizeof second);
}

// Returns the standard deviation of random integers, scales included, in units of the scale.
float deviation_of_quants(Encoding e) {
  switch (e) {
    case Encoding::q4_0:
    case Encoding::q4_1:
      return 4.6f;  // uniform in 0 … 15
    case Encoding::q5_0:
    case Encoding::q5_1:
      return 9.2f;
    case Encoding::q4_k:
      return 258;  // uniform scales and minima of 0 … 63
    case Encoding::q5_k:
      return 527;
    case Encoding::q6_k:
      return 1366;  // uniform scales of -128 … 127
    case Encoding::q2_k:
      return 13.9f;  // uniform scales and minima of 0 … 15
    case Encoding::q3_k:
      return 43.3f;  // uniform scales of -32 … 31
    case Encoding::iq4_nl:
      return 67.4f;  // uniform entries of its table
    case Encoding::iq4_xs:
      return 1246;
    case Encoding::mxfp4:
      return 5.85f;
    default:
      return 73.3f;  // uniform in -127 … 127
  }
}

// The parameters shared by all blocks of a tensor.
struct Generator {
  Encoding encoding;
  uint64_t key;
  int exponent;
  uint16_t scale;  // f16, or mxfp4's exponent

  Generator(const TensorInfo& tensor, uint64_t seed)
      : encoding(tensor.encoding), key(checksum(tensor.name) ^ splitmix64(seed, 0)) {
    const float deviation = tensor.rows == 1 || tensor.name == "position"
                                ? kVectorDeviation
                                : 0.5f / std::sqrt(static_cast<float>(tensor.cols));
    exponent = static_cast<int>(std::floor(std::log2(deviation / 0.88f) + 0.5f));
    const float step = deviation / deviation_of_quants(encoding);
    scale = encoding == Encoding::mxfp4 ? static_cast<uint16_t>(std::lrint(std::log2(step)) + kExponentOfOne)
                                        : f32_to_f16(step);
  }

  void fill(uint64_t block, std::byte* out) const {
    switch (encoding) {
      case Encoding::f32:
        return fill_floats<uint32_t, 23, 127>(key, block, exponent, out);
      case Encoding::f16:
        return fill_floats<uint16_t, 10, 15>(key, block, exponent, out);
      case Encoding::bf16:
        return fill_floats<uint16_t, 7, 127>(key, block, exponent, out);
      case Encoding::q8_0:
        return fill_q8_0(key, block, scale, out);
      case Encoding::q4_0:
        return fill_q4_0(key, block, scale, out);
      default:
        return fill_block(encoding, key, block, scale, out);
    }
  }
};

// Returns letters for a number: "aa", "ab", … "zz", "aaa", …
std::string word_text(uint32_t number) {
  constexpr uint32_t kLetters = 26;
  std::string text;
  for (uint64_t n = uint64_t{number} + kLetters + 1; n > 0; n = (n - 1) / kLetters) {
    text.insert(text.begin(), static_cast<char>('a' + (n - 1) % kLetters));
  }
  return text;
}

Vocab make_vocab(uint32_t size) {
  constexpr std::string_view kSpace = "\u2581";
  constexpr char kFirstPrintable = '!';
  constexpr uint32_t kPrintable = '~' - '!' + 1;
  Vocab vocab;
  vocab.pieces = {"<unk>", "<s>", "</s>"};
  vocab.types = {TokenType::unknown, TokenType::control, TokenType::control};
  for (uint32_t byte = 0; byte < kByteTokens; ++byte) vocab.pieces.push_back(fmt::format("<0x{:02X}>", byte));
  vocab.types.resize(kFirstWord, TokenType::byte);
  vocab.scores.resize(kFirstWord, 0.0f);
  for (uint32_t i = 0; vocab.pieces.size() < size; ++i) {
    if (i == 0) {
      vocab.pieces.emplace_back(kSpace);
    } else if (i <= kPrintable) {
      vocab.pieces.emplace_back(1, static_cast<char>(kFirstPrintable + static_cast<char>(i - 1)));
    } else {
      const uint32_t number = i - kPrintable - 1;
      vocab.pieces.push_back((number % 2 == 0 ? std::string(kSpace) : "") + word_text(number / 2));
    }
    vocab.types.push_back(TokenType::normal);
    vocab.scores.push_back(-static_cast<float>(i));
  }
  vocab.unknown = 0;
  vocab.bos = 1;
  vocab.eos = 2;
  vocab.end_tokens = {2};
  return vocab;
}

}  // namespace

Result<std::unique_ptr<SyntheticSource>> SyntheticSource::make(ModelConfig config, Encoding encoding,
                                                               uint64_t seed) {
  if (config.vocab_size <= kFirstWord) {
    return Error{
        Code::invalid_argument, config.name,
        fmt::format("a vocabulary of {} is too small for the special and byte tokens, expected more than {}",
                    config.vocab_size, kFirstWord)};
  }
  std::unique_ptr<SyntheticSource> source(new SyntheticSource);
  for (const TensorSpec& spec : required_tensors(config)) {
    TensorInfo info;
    info.name = spec.name;
    info.rows = spec.rows;
    info.cols = spec.cols;
    info.encoding = spec.rows == 1 || spec.name == "position" ? Encoding::f32 : encoding;
    if (info.cols % block_values(info.encoding) != 0) {
      return Error{Code::unsupported, config.name,
                   fmt::format("{} has rows of {} columns; {} needs a multiple of {}", info.name, info.cols,
                               name(encoding), block_values(encoding))};
    }
    source->tensors_.push_back(std::move(info));
  }
  source->vocab_ = make_vocab(config.vocab_size);
  source->path_ = fmt::format("synthetic {} {} seed {}", config.name, name(encoding), seed);
  source->fingerprint_ = fmt::format("{} generator {}", source->path_, kGeneratorVersion);
  source->seed_ = seed;
  source->config_ = std::move(config);
  return source;
}

Status SyntheticSource::read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const {
  TIERD_CHECK(offset <= tensor.bytes() && out.size() <= tensor.bytes() - offset);
  if (tensor.name.ends_with("norm")) {
    TIERD_CHECK(offset % sizeof(float) == 0 && out.size() % sizeof(float) == 0);
    constexpr float kOne = 1.0f;
    for (size_t i = 0; i < out.size(); i += sizeof kOne) std::memcpy(out.data() + i, &kOne, sizeof kOne);
    return {};
  }
  const Generator generator(tensor, seed_);
  const uint64_t block_size = encoded_bytes(tensor.encoding, values_made_at_once(tensor.encoding));
  for (uint64_t done = 0; done < out.size();) {
    const uint64_t block = (offset + done) / block_size;
    const uint64_t within = (offset + done) % block_size;
    const uint64_t count = std::min<uint64_t>(block_size - within, out.size() - done);
    if (count == block_size) {
      generator.fill(block, out.data() + done);
    } else {
      std::byte edge[kLargestBlock];
      generator.fill(block, edge);
      std::memcpy(out.data() + done, edge + within, count);
    }
    done += count;
  }
  return {};
}

}  // namespace tierd
