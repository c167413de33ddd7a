// Models of block encodings: one as files named Q4_K_M have them, most matrices in Q4_K, some in Q6_K, norms
// in F32; and one of each encoding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/gguf_writer.h"
#include "core/store/source.h"
#include "core/store/store.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/golden_model.h"
#include "tests/store/memory_source.h"

namespace tierd {
namespace {

ModelConfig wide_llama() {
  ModelConfig config = small_llama();
  config.d_model = kSuperBlock;
  config.head_dim = 64;
  config.d_ff = 3 * kSuperBlock;
  return config;
}

MemorySource mixed_source() {
  return {wide_llama(),
          Encoding::q4_k,
          7,
          {{"head", Encoding::q6_k},
           {"layers.0.v", Encoding::q6_k},
           {"layers.0.down", Encoding::q6_k},
           {"layers.1.up", Encoding::q5_k}}};
}

// The same tensors with all values decoded to f32.
class DecodedSource : public TensorSource {
 public:
  explicit DecodedSource(const TensorSource& source) : source_(source), tensors_(source.tensors()) {
    for (TensorInfo& tensor : tensors_) tensor.encoding = Encoding::f32;
  }
  const ModelConfig& config() const override { return source_.config(); }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return source_.vocab(); }
  std::string fingerprint() const override { return source_.fingerprint() + " decoded"; }
  std::string path() const override { return source_.path(); }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override {
    TIERD_ASSIGN(const std::vector<float> values, source_.read_f32(*source_.find(tensor.name)));
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + offset, out.size());
    return {};
  }

 private:
  const TensorSource& source_;
  std::vector<TensorInfo> tensors_;
};

class BlockEncodings : public testing::Test {
 protected:
  static void SetUpTestSuite() { cache_ = use_test_cache(); }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  BlockEncodings() {
    for (uint32_t i = 0; i < kGoldenTokens; ++i) tokens_.push_back(3 + i * 37 % 290);
  }
  void write(const MemorySource& source) {
    ASSERT_TRUE(write_gguf(source, gguf_, true).ok());
    ASSERT_TRUE(write_gguf(DecodedSource(source), decoded_, true).ok());
  }
  // Writes a store of the rows of the file.
  std::string row_store() const {
    const std::string store = folder_.path() + "/store";
    const auto source = open_source(gguf_);
    EXPECT_TRUE(source.ok()) << source.error().line();
    EXPECT_TRUE(write_store(**source, store, {.quiet = true}).ok());
    return store;
  }

  std::vector<float> logits(const std::string& model, const std::string& activations, uint32_t chunk,
                            const std::string& capacity = "all") const {
    Config config;
    config.model = model;
    config.context = kGoldenTokens;
    config.threads = 1;
    config.bind = false;
    config.activations = activations;
    config.tier("dram").capacity = capacity;
    auto made = run_all_logits(config, tokens_, chunk);
    EXPECT_TRUE(made.ok()) << made.error().line();
    return made.ok() ? *made : std::vector<float>();
  }

  static inline std::string cache_;
  const TempFolder folder_;
  const std::string gguf_ = folder_.path() + "/mixed.gguf";
  const std::string decoded_ = folder_.path() + "/decoded.gguf";
  std::vector<uint32_t> tokens_;
};

class KQuants : public BlockEncodings {
 protected:
  void SetUp() override { write(mixed_source()); }
};

TEST_F(KQuants, GiveTheBitsOfTheirValuesInF32) {
  const std::vector<float> expected = logits(decoded_, "f32", kGoldenTokens);
  EXPECT_TRUE(std::ranges::all_of(expected, [](float x) { return std::isfinite(x); }));
  for (const uint32_t chunk : {1U, 5U, kGoldenTokens})
    expect_the_same_bits(logits(gguf_, "f32", chunk), expected);
}

// Each weight is finite, but the logits overflow. No token can be chosen by them.
TEST_F(KQuants, LogitsThatAreNotFiniteEndTheText) {
  MemorySource source = mixed_source();
  for (uint32_t column = 0; column < kSuperBlock; ++column) source.set("out_norm", 0, column, 3e38f);
  const std::string file = folder_.path() + "/large.gguf";
  ASSERT_TRUE(write_gguf(source, file, true).ok());
  Config config;
  config.model = file;
  config.context = kGoldenTokens;
  config.threads = 1;
  config.bind = false;
  const auto made = run_all_logits(config, tokens_, kGoldenTokens);
  ASSERT_EQ(made.code(), Code::corrupt);
  EXPECT_EQ(made.error().line().find("logits: the logits after token 3 at position 0 are not all finite"), 0u)
      << made.error().line();
}

TEST_F(KQuants, AreRunFromAStoreWithLittleMemoryToo) {
  const std::string store = row_store();
  const std::vector<float> expected = logits(gguf_, "f32", kGoldenTokens);
  expect_the_same_bits(logits(store, "f32", 1, "60%"), expected);
  expect_the_same_bits(logits(store, "int8", 5, "60%"), logits(gguf_, "int8", 1));
}

// Returns the relative error: the length of the difference divided by the length of `expected`.
double distance(const std::vector<float>& found, const std::vector<float>& expected) {
  EXPECT_EQ(found.size(), expected.size());
  double error = 0;
  double whole = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    error += std::pow(double{found[i]} - expected[i], 2);
    whole += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(error / whole);
}

TEST_F(KQuants, AreNearWithInt8Activations) {
  const double found = distance(logits(gguf_, "int8", kGoldenTokens), logits(gguf_, "f32", kGoldenTokens));
  EXPECT_GT(found, 0);
  EXPECT_LT(found, 0.1);
}

// Stores in bundles and channels are encoded anew. A finer encoding is nearer to the original, and a small
// budget gives the same bits as a large one.
TEST_F(KQuants, AreNearInLayoutsOfColumns) {
  const std::vector<float> expected = logits(gguf_, "f32", kGoldenTokens);
  const auto source = open_source(gguf_);
  ASSERT_TRUE(source.ok()) << source.error().line();
  for (const Layout layout : {Layout::neuron, Layout::channel_group}) {
    const auto stored_as = [&](std::optional<Encoding> encoding) {
      const std::string store = fmt::format("{}/{}-{}", folder_.path(), name(layout), encoding.has_value());
      WriteOptions options{.layout = layout, .encoding = encoding, .quiet = true};
      if (layout == Layout::channel_group) options.layer_group = 2;
      const Status written = write_store(**source, store, options);
      EXPECT_TRUE(written.ok()) << written.error().line();
      const std::vector<float> found = logits(store, "f32", kGoldenTokens);
      expect_the_same_bits(logits(store, "f32", 1, "70%"), found);
      return distance(found, expected);
    };
    const double of_q4_0 = stored_as(std::nullopt);
    EXPECT_LT(stored_as(Encoding::q8_0), 0.05) << name(layout);
    EXPECT_GT(of_q4_0, 0.05) << name(layout);
  }
}

class EachEncoding : public BlockEncodings, public testing::WithParamInterface<Encoding> {};

TEST_P(EachEncoding, GivesItsValuesFromFileAndStore) {
  write({wide_llama(), GetParam(), 7});
  const std::vector<float> expected = logits(decoded_, "f32", kGoldenTokens);
  expect_the_same_bits(logits(gguf_, "f32", kGoldenTokens), expected);
  const std::string store = row_store();
  expect_the_same_bits(logits(store, "f32", 1, "60%"), expected);
  const std::vector<float> int8 = logits(gguf_, "int8", 1);
  expect_the_same_bits(logits(store, "int8", 5, "60%"), int8);
  EXPECT_LT(distance(int8, expected), 0.1);
}

// q8_0 and q4_0 scale products instead of values; golden models and lossless_test have them.
INSTANTIATE_TEST_SUITE_P(All, EachEncoding,
                         testing::Values(Encoding::q4_k, Encoding::q5_k, Encoding::q6_k, Encoding::q4_1,
                                         Encoding::q5_0, Encoding::q5_1, Encoding::q2_k, Encoding::q3_k,
                                         Encoding::iq4_nl, Encoding::iq4_xs, Encoding::mxfp4),
                         [](const auto& test) { return std::string(name(test.param)); });

}  // namespace
}  // namespace tierd
