// Tensors of plugins through the whole stack: read from a file, budgeted, multiplied by the tier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/base/random.h"
#include "core/model/layout/codec.h"
#include "tests/e2e/golden_model.h"
#include "tests/e2e/probe.h"
#include "tests/formats/safetensors_builder.h"
#include "tiers/compute/kernels.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

RuntimeOptions options(bool fit = true) {
  RuntimeOptions options;
  options.quiet = true;
  options.fit = fit;
  return options;
}

// The values of a tensor as the file has them.
struct Values {
  std::vector<uint64_t> shape;
  Encoding encoding = Encoding::f32;
  std::vector<float> values;
};

class PluginTensorsTest : public testing::Test {
 protected:
  // Makes the store first: a run that makes a store creates its strategies twice, once as a check.
  static void SetUpTestSuite() {
    cache_ = use_test_cache();
    const auto made = prepare_run(config(""), options());
    ASSERT_TRUE(made.ok()) << made.error().line();
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(cache_); }

  void add(const std::string& name, Encoding encoding, const std::vector<uint64_t>& shape) {
    static const std::map<Encoding, std::string> dtypes = {
        {Encoding::f32, "F32"}, {Encoding::f16, "F16"}, {Encoding::bf16, "BF16"}};
    uint64_t count = 1;
    for (const uint64_t extent : shape) count *= extent;
    Values tensor{shape, encoding, std::vector<float>(count)};
    for (float& value : tensor.values) value = draw();
    std::string bytes(encoded_bytes(encoding, static_cast<uint32_t>(count)), '\0');
    const auto encoded = std::as_writable_bytes(std::span(bytes));
    encode(encoding, tensor.values, encoded);
    decode(encoding, encoded, tensor.values);
    file_.add(name, dtypes.at(encoding), shape, bytes);
    tensors_[name] = std::move(tensor);
  }
  float draw() { return static_cast<float>(random_.below(1u << 20)) / (1u << 19) - 1; }

  std::string write() { return folder_.write("tables.safetensors", file_.bytes()); }
  static Config config(const std::string& tensors) {
    Config config = golden_config("llama2");
    use_probe(config);
    config.predictor.tensors = tensors;
    return config;
  }

  Random random_{5};
  TempFolder folder_;
  SafetensorsBuilder file_;
  std::map<std::string, Values> tensors_;
  static inline std::string cache_;
};

// Checks y = x W^T for `rows` rows against a naive twin in double. A row's bits must not depend on other
// rows: `seen` keeps them by the row's number.
void expect_linear(const tierd_host& host, uint32_t tensor, const Values& w, const std::vector<float>& x,
                   uint32_t rows, std::map<uint32_t, std::vector<float>>& seen) {
  const uint64_t n_out = w.shape[0], n_in = w.shape[1];
  constexpr float kUntouched = 12345;
  std::vector<float> y(rows * n_out + 1, kUntouched);
  ASSERT_EQ(host.linear(host.context, tensor, x.data(), rows, y.data()), TIERD_OK);
  EXPECT_EQ(y.back(), kUntouched);
  for (uint32_t row = 0; row < rows; ++row) {
    const std::vector<float> of_row(y.begin() + static_cast<ptrdiff_t>(row * n_out),
                                    y.begin() + static_cast<ptrdiff_t>((row + 1) * n_out));
    const auto [known, is_new] = seen.emplace(row, of_row);
    if (!is_new && n_out != 0) {
      expect_the_same_bits(of_row, known->second);
    }
    for (uint64_t i = 0; i < n_out; ++i) {
      double sum = 0, magnitude = 0;
      for (uint64_t j = 0; j < n_in; ++j) {
        const double product = double{w.values[i * n_in + j]} * x[row * n_in + j];
        sum += product;
        magnitude += std::abs(product);
      }
      // The weights are exact in f32 whatever their encoding. A value goes through no more than n_in + 1
      // roundings of half a unit in the last place, 2^-24 each.
      const double bound = static_cast<double>(n_in + 1) * 0x1p-24 * magnitude;
      ASSERT_NEAR(of_row[i], sum, bound) << name(w.encoding) << " " << n_out << " x " << n_in << ", row "
                                         << row << " of " << rows << ", output " << i;
    }
  }
}

TEST_F(PluginTensorsTest, AreReadAndMultiplied) {
  for (const Encoding encoding : {Encoding::f32, Encoding::f16, Encoding::bf16}) {
    const std::string of(name(encoding));
    for (const auto& [rows, cols] : std::vector<std::pair<uint64_t, uint64_t>>{{1, 1},
                                                                               {1, 70},
                                                                               {70, 1},
                                                                               {16, 32},
                                                                               {17, 33},
                                                                               {15, 5},
                                                                               {250, 96},
                                                                               {1000, 257},
                                                                               {0, 8},
                                                                               {8, 0},
                                                                               {0, 0}}) {
      add(of + "." + std::to_string(rows) + "x" + std::to_string(cols), encoding, {rows, cols});
    }
    add(of + ".vector", encoding, {70'000});
    add(of + ".nothing", encoding, {0});
    add(of + ".cube", encoding, {3, 5, 7});
    add(of + ".number", encoding, {});
  }
  const std::string path = write();
  const auto check = [&](const tierd_host& host) {
    uint32_t matrices = 0;
    for (const auto& [name, expected] : tensors_) {
      SCOPED_TRACE(name);
      tierd_tensor_view view{};
      view.size = sizeof view;
      ASSERT_EQ(host.tensor(host.context, name.c_str(), &view), TIERD_OK);
      ASSERT_EQ(view.n_dims, expected.shape.size());
      EXPECT_TRUE(std::equal(expected.shape.begin(), expected.shape.end(), view.dims));
      if (view.n_dims != 2) {
        EXPECT_EQ(view.data == nullptr, expected.values.empty());
        for (size_t i = 0; i < expected.values.size(); ++i) ASSERT_EQ(view.data[i], expected.values[i]) << i;
        float unused = 0;
        EXPECT_EQ(host.linear(host.context, view.tensor, &unused, 1, &unused), TIERD_E_INVALID);
        continue;
      }
      EXPECT_EQ(view.data, nullptr);
      std::vector<float> x(7 * expected.shape[1] + 1);
      for (float& value : x) value = draw();
      std::map<uint32_t, std::vector<float>> seen;
      for (const uint32_t rows : {1u, 2u, 7u}) {
        ASSERT_NO_FATAL_FAILURE(expect_linear(host, view.tensor, expected, x, rows, seen));
      }
      ++matrices;
    }
    EXPECT_EQ(matrices, 3u * 11u);
    float unused = 0;
    EXPECT_EQ(host.linear(host.context, static_cast<uint32_t>(tensors_.size()), &unused, 1, &unused),
              TIERD_E_INVALID);
    EXPECT_EQ(host.linear(host.context, UINT32_MAX, &unused, 1, &unused), TIERD_E_INVALID);
  };
  for (const std::string_view kernels : kernel_names()) {
    for (const uint32_t threads : {1u, 3u}) {
      SCOPED_TRACE(std::string(kernels) + ", threads: " + std::to_string(threads));
      Config config = PluginTensorsTest::config(path);
      config.kernels = kernels;
      config.threads = threads;
      int created = 0;
      the_probe().created = [&](const tierd_host& host) {
        ++created;
        check(host);
      };
      const auto runtime = make_runtime(config, options());
      the_probe() = {};
      ASSERT_TRUE(runtime.ok()) << runtime.error().line();
      EXPECT_EQ(created, 1);
      if (HasFailure()) return;
    }
  }
}

TEST_F(PluginTensorsTest, WhatPluginsCannotBeShownIsRefused) {
  const auto refusal = [&](const char* dtype, const std::vector<uint64_t>& shape, uint64_t bytes) {
    SafetensorsBuilder file;
    file.add("odd", dtype, shape, std::string(bytes, '\0'));
    const std::string path = folder_.write("odd.safetensors", file.bytes());
    const auto opened = PluginTensorFile::open(path);
    EXPECT_EQ(opened.code(), Code::unsupported);
    const std::string line = opened.ok() ? "" : opened.error().line();
    EXPECT_THAT(line, StartsWith(path + ": tensor 'odd' "));
    return line;
  };
  EXPECT_THAT(refusal("I32", {2}, 8), HasSubstr("is I32, expected F32, F16 or BF16"));
  EXPECT_THAT(refusal("F32", {1, 1, 1, 1, 1}, 4), HasSubstr("has 5 dimensions, expected at most 4"));
  EXPECT_THAT(refusal("F32", {0, 1ull << 32}, 0), HasSubstr("is a matrix of 0 x 4294967296"));
  EXPECT_THAT(refusal("F16", {1ull << 32, 0}, 0), HasSubstr("is a matrix of 4294967296 x 0"));
}

// The file has a hole of one terabyte. Reading it before checking its size would not end.
TEST_F(PluginTensorsTest, WhatDoesNotFitIsRefusedBeforeItIsRead) {
  constexpr uint64_t kBytes = uint64_t{1} << 40;
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{kBytes / 4}, {1u << 19, 1u << 19}}) {
    SafetensorsBuilder file;
    file.header["huge"] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {0, kBytes}}};
    const std::string path = folder_.write("huge.safetensors", file.bytes());
    std::filesystem::resize_file(path, std::filesystem::file_size(path) + kBytes);
    for (const char* capacity : {"50%", "100%", "1 MiB", "2 GiB"}) {
      Config config = PluginTensorsTest::config(path);
      config.tier("dram").capacity = capacity;
      const auto plan = plan_run(config, options(false));
      ASSERT_FALSE(plan.ok());
      EXPECT_EQ(plan.code(), Code::no_space);
      EXPECT_THAT(plan.error().line(),
                  StartsWith(path + ": its tensors need 1.10 TB, tiers.dram.capacity is "));
      EXPECT_THAT(plan.error().line(), HasSubstr("needs at least 1.10 TB (10995"));
      EXPECT_THAT(plan.error().line(), testing::EndsWith("; set that capacity, or --fit"));
      EXPECT_EQ(plan.error().line().find('\n'), std::string::npos);
    }
    // A swap is limited by the memory of the run.
    Config config = PluginTensorsTest::config("");
    auto runtime = make_runtime(config, options());
    ASSERT_TRUE(runtime.ok()) << runtime.error().line();
    StrategyConfig next{"probe"};
    next.tensors = path;
    const uint64_t used = (*runtime)->budget().used();
    const Status swapped = (*runtime)->swap("predictor", next);
    EXPECT_EQ(swapped.code(), Code::no_space);
    EXPECT_THAT(swapped.error().line(), StartsWith(path + ": budget: plugin tables needs 1.10 TB, but of "));
    EXPECT_EQ((*runtime)->budget().used(), used);
  }
}

TEST_F(PluginTensorsTest, AreCountedAndLeaveWithTheirPlugin) {
  add("matrix", Encoding::f16, {17, 33});  // two row groups
  add("vector", Encoding::bf16, {10});     // floats in memory
  constexpr uint64_t kBytes = 2 * 16 * 33 * 2 + 10 * 4;
  Config config = PluginTensorsTest::config(write());
  const auto tables_of = [](const Runtime& runtime) {
    for (const Budget::Line& line : runtime.budget().lines()) {
      if (line.name == "plugin tables") return line.bytes;
    }
    return UINT64_MAX;
  };
  // The least capacity is exact: the run works with it and not with one byte less.
  auto plan = plan_run(config, options());
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  EXPECT_EQ(plan->memory.tiers.front().tables, (kBytes - 40 + 63) / 64 * 64 + 40);
  config.tier("dram").capacity = std::to_string(plan->memory.tiers.front().least - 1);
  EXPECT_THAT(plan_run(config, options(false)).error().line(),
              HasSubstr("tables.safetensors: its tensors need"));
  config.tier("dram").capacity = std::to_string(plan->memory.tiers.front().least);
  EXPECT_TRUE(plan_run(config, options(false)).ok());
  config.tier("dram").capacity = "1000";
  auto runtime = make_runtime(config, options());
  ASSERT_TRUE(runtime.ok()) << runtime.error().line();
  EXPECT_EQ((*runtime)->budget().capacity(), plan->memory.tiers.front().least);
  EXPECT_EQ(tables_of(**runtime), plan->memory.tiers.front().tables);
  ASSERT_TRUE((*runtime)->swap("predictor", StrategyConfig{"dense"}).ok());
  EXPECT_EQ(tables_of(**runtime), 0u);
}

}  // namespace
}  // namespace tierd
