#include "tiers/compute/recoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/column.h"
#include "core/model/layout/row_group.h"
#include "tests/compute/kernel_sets_under_test.h"

namespace tierd {
namespace {

constexpr std::byte kUntouchedByte{0xa5};

// Returns blocks typical of weights, and blocks that are hard to quantize.
std::vector<float> hard_blocks(Random& random) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values;
  const auto block = [&](auto value) {
    for (uint32_t i = 0; i < kQuantBlock; ++i) values.push_back(value(i));
  };
  for (int n = 0; n < 50; ++n) block([&](uint32_t) { return random.symmetric(); });
  block([](uint32_t) { return 0.0F; });
  block([](uint32_t) { return -0.0F; });
  // Two values of the same magnitude: the sign of the first one decides.
  block([](uint32_t i) { return i == 9 ? 0.5F : i == 20 ? -0.5F : 0.1F; });
  block([](uint32_t i) { return i == 30 ? 0.5F : i == 20 ? -0.5F : 0.1F; });
  // Values halfway between two steps.
  block([](uint32_t i) { return i == 0 ? 127.0F : static_cast<float>(i) - 15.5F; });
  block([](uint32_t i) { return i == 31 ? -8.0F : static_cast<float>(i % 16) - 7.5F; });
  for (const float scale : {1e-9F, 1e-7F, 3e-6F, 6e-5F, 60000.0F, 1e9F})
    block([&](uint32_t) { return scale * random.symmetric(); });
  block([&](uint32_t i) { return i == 7 ? kInf : random.symmetric(); });
  block([&](uint32_t i) { return i == 7 ? -kInf : i == 12 ? kInf : random.symmetric(); });
  block([&](uint32_t i) { return i % 5 == 0 ? kNan : random.symmetric(); });
  block([&](uint32_t) { return kNan; });
  return values;
}

class EncodeBlocks : public KernelSet {};
TIERD_ALL_KERNEL_SETS(EncodeBlocks);

TEST_P(EncodeBlocks, GiveTheBitsOfTheCodec) {
  Random random(7);
  const std::vector<float> values = hard_blocks(random);
  const auto blocks = static_cast<uint32_t>(values.size() / kQuantBlock);
  for (const Encoding from : {Encoding::f32, Encoding::f16, Encoding::bf16}) {
    std::vector<std::byte> in(encoded_bytes(from, values.size()) + 1);
    encode(from, values, std::span(in).subspan(1));  // not aligned
    for (const Encoding to : {Encoding::q8_0, Encoding::q4_0}) {
      SCOPED_TRACE(std::string(name(from)) + " to " + std::string(name(to)));
      std::vector<std::byte> out[2];
      const ComputeKernels* const sets[] = {&kernels(), &scalar()};
      for (int i = 0; i < 2; ++i) {
        out[i].assign(encoded_bytes(to, values.size()), kUntouchedByte);
        sets[i]->encode_blocks(from, &in[1], blocks, to,
                               {out[i].data(), block_bytes(to), out[i].data() + 2, block_bytes(to)});
      }
      for (uint32_t b = 0; b < blocks; ++b) {
        EXPECT_EQ(std::memcmp(&out[0][b * block_bytes(to)], &out[1][b * block_bytes(to)], block_bytes(to)), 0)
            << "block " << b << ", whose first value is " << values[b * kQuantBlock];
      }
      std::vector<float> decoded(values.size());
      decode(from, std::span(in).subspan(1), decoded);
      std::vector<std::byte> plain(encoded_bytes(to, values.size()));
      encode(to, decoded, plain);
      EXPECT_EQ(out[1], plain) << "the scalar one";
    }
  }
}

class NeuronRecodingOf : public testing::TestWithParam<std::pair<Encoding, Encoding>> {};
INSTANTIATE_TEST_SUITE_P(
    Encodings, NeuronRecodingOf,
    testing::Values(std::pair(Encoding::f16, Encoding::q8_0), std::pair(Encoding::f16, Encoding::q4_0),
                    std::pair(Encoding::f32, Encoding::q8_0), std::pair(Encoding::f32, Encoding::f16),
                    std::pair(Encoding::bf16, Encoding::q4_0), std::pair(Encoding::q8_0, Encoding::q4_0)));

std::vector<float> some(uint64_t n, Random& random) {
  std::vector<float> values(n);
  for (float& value : values) value = random.symmetric();
  return values;
}
// Returns the values after encoding and decoding.
std::vector<float> kept_by(Encoding encoding, const std::vector<float>& values) {
  std::vector<std::byte> bytes(encoded_bytes(encoding, values.size()));
  encode(encoding, values, bytes);
  std::vector<float> kept(values.size());
  decode(encoding, bytes, kept);
  return kept;
}

std::vector<std::byte> bundle_of(const Bundle& bundle, const std::vector<std::vector<float>>& parts) {
  std::vector<std::byte> bytes(bundle.bytes());
  const auto piece = [&](uint64_t offset) { return std::span(bytes).subspan(offset, bundle.row_bytes()); };
  if (bundle.gated) encode(bundle.encoding, parts[0], piece(0));
  encode(bundle.encoding, parts[1], piece(bundle.up_offset()));
  encode_column(bundle.encoding, parts[2], piece(bundle.down_offset()));
  return bytes;
}

TEST_P(NeuronRecodingOf, BundlesGivesWhatTheStoreWouldHave) {
  const auto [from, to] = GetParam();
  Random random(3);
  for (const bool gated : {false, true}) {
    for (const uint32_t width : {32u, 96u, 512u, 544u, 1120u}) {
      SCOPED_TRACE(testing::Message() << width << (gated ? " gated" : ""));
      const Bundles cut{.width = width, .inner = 1, .gated = gated};
      const Encodings before(gated ? 3 : 2, from), after(gated ? 3 : 2, to);
      std::vector<std::vector<float>> parts;
      for (int i = 0; i < 3; ++i) parts.push_back(kept_by(from, some(width, random)));
      const std::vector<std::byte> in = bundle_of(cut.bundle(before), parts);
      const std::vector<std::byte> wanted = bundle_of(cut.bundle(after), parts);
      const NeuronRecoding recoding(cut, before, after);
      ASSERT_EQ(recoding.from_bytes(), in.size());
      ASSERT_EQ(recoding.to_bytes(), wanted.size());
      for (const auto& set : kernel_names()) {
        std::vector<std::byte> out(wanted.size(), kUntouchedByte);
        recoding.encode_neuron(*kernels_by_name(set), in.data(), out.data());
        EXPECT_EQ(out, wanted) << set;
      }
    }
  }
}

std::vector<std::byte> expert_of(const Experts& cut, Encoding encoding,
                                 const std::vector<std::vector<float>>& parts) {
  const ExpertMatrices matrices = cut.matrices(Encodings(3, encoding));
  std::vector<std::byte> bytes(matrices.bytes());
  const uint64_t offsets[] = {0, matrices.up_offset(), matrices.down_offset()};
  for (int part = 0; part < 3; ++part) {
    const uint32_t rows = part == 2 ? cut.width : cut.inner, cols = part == 2 ? cut.inner : cut.width;
    std::vector<std::byte> plain(encoded_bytes(encoding, uint64_t{rows} * cols));
    encode(encoding, parts[part], plain);
    const uint64_t row_bytes = encoded_bytes(encoding, cols);
    for (uint32_t first = 0; first < rows; first += kGroupRows) {
      const uint32_t n = std::min(kGroupRows, rows - first);
      pack_row_group(encoding, n, cols, std::span(plain).subspan(first * row_bytes, n * row_bytes),
                     std::span(bytes).subspan(offsets[part] + first * row_bytes, kGroupRows * row_bytes));
    }
  }
  return bytes;
}

TEST_P(NeuronRecodingOf, ExpertsGivesWhatTheStoreWouldHave) {
  const auto [from, to] = GetParam();
  Random random(5);
  for (const auto& [width, inner] : {std::pair(32u, 32u), std::pair(64u, 96u), std::pair(96u, 64u)}) {
    const Experts cut{.width = width, .inner = inner, .experts = 1};
    std::vector<std::vector<float>> parts;
    for (int i = 0; i < 3; ++i) parts.push_back(kept_by(from, some(uint64_t{width} * inner, random)));
    const std::vector<std::byte> in = expert_of(cut, from, parts), wanted = expert_of(cut, to, parts);
    const NeuronRecoding recoding(cut, Encodings(3, from), Encodings(3, to));
    ASSERT_EQ(recoding.from_bytes(), in.size());
    ASSERT_EQ(recoding.to_bytes(), wanted.size());
    for (const auto& set : kernel_names()) {
      std::vector<std::byte> out(wanted.size(), kUntouchedByte);
      recoding.encode_neuron(*kernels_by_name(set), in.data(), out.data());
      EXPECT_EQ(out, wanted) << set << " " << width << " x " << inner;
    }
  }
}

// Pieces may be encoded one by one at any place.
TEST(NeuronRecoding, PiecesCoverTheNeuron) {
  for (const Cut& cut : {Cut(Bundles{.width = 96, .inner = 3, .gated = true}),
                         Cut(Experts{.width = 64, .inner = 96, .experts = 2})}) {
    const NeuronRecoding recoding(cut, Encodings(3, Encoding::f16), Encodings(3, Encoding::q4_0));
    uint64_t end = 0, most = 0;
    for (size_t i = 0; i < recoding.pieces(); ++i) {
      const NeuronRecoding::Piece piece = recoding.piece(i);
      EXPECT_EQ(piece.to, end);
      EXPECT_LE(piece.from + piece.from_bytes, recoding.from_bytes());
      end += piece.to_bytes;
      most = std::max(most, piece.to_bytes);
    }
    EXPECT_EQ(end, recoding.to_bytes());
    EXPECT_EQ(recoding.largest_piece(), most);
  }
}

}  // namespace
}  // namespace tierd
