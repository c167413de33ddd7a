#include "core/model/shape_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace tierd {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kGood =
    "architecture = \"llama\"\nn_layers = 2\nd_model = 64\nn_heads = 4\nd_ff = 128\nvocab_size = 300\n"
    "context_length = 32\n";

std::string refused(const std::string& text) {
  const std::string path = testing::TempDir() + "/tierd_shape.toml";
  std::ofstream(path) << text;
  const auto config = read_shape(path);
  return config.ok() ? "accepted" : config.error().line();
}

TEST(ShapeFile, PublicShapes) {
  EXPECT_THAT(known_shapes(), Contains("llama-2-7b"));
  for (const std::string& name : known_shapes()) {
    const auto config = read_shape(name);
    ASSERT_TRUE(config.ok()) << config.error().line();
    EXPECT_EQ(config->name, name);
    // Qwen3's heads together are wider than the model.
    EXPECT_EQ(config->q_dim(), (name.starts_with("qwen3") ? 2 : 1) * config->d_model);
  }
}

TEST(ShapeFile, Defaults) {
  const std::string path = testing::TempDir() + "/tierd_shape_default.toml";
  std::ofstream(path) << kGood;
  const auto config = read_shape(path);
  ASSERT_TRUE(config.ok()) << config.error().line();
  EXPECT_EQ(config->n_kv_heads, 4u);
  EXPECT_EQ(config->head_dim, 16u);
  EXPECT_EQ(config->name, "tierd_shape_default");
}

TEST(ShapeFile, ErrorsNameTheLine) {
  const std::string good = kGood;
  EXPECT_THAT(refused(good + "n_layer = 3\n"), HasSubstr("tierd_shape.toml:8: 'n_layer' is unknown"));
  EXPECT_THAT(refused(good + "norm = \"batch\"\n"),
              HasSubstr(":8: 'norm' is 'batch'; one of rms, layer is expected"));
  EXPECT_THAT(refused(good + "gated = 1\n"), HasSubstr(":8: 'gated' is 1; true or false"));
  EXPECT_THAT(refused(good + "norm_eps = inf\n"), HasSubstr(":8: 'norm_eps' is inf; a number"));
  // Unused with learned positions, but written to a store's manifest, which cannot hold infinity.
  EXPECT_THAT(refused(good + "rope_theta = 1e39\nposition = \"learned\"\n"),
              HasSubstr(":8: 'rope_theta' is 1e+39; a number"));
  EXPECT_THAT(refused(good + "head_dim = -4\n"), HasSubstr(":8: 'head_dim' is -4; a whole number"));
  EXPECT_THAT(refused(good + "rope_divisors = [1.0, \"x\"]\n"),
              HasSubstr(":8: 'rope_divisors' is of type array; a list of numbers"));
  EXPECT_THAT(refused(good + "n_layers = 3\n"), HasSubstr(":8"));
  EXPECT_THAT(refused("architecture = \"llama\"\n"), HasSubstr("'n_layers' is missing"));
  EXPECT_THAT(refused(good + "head_dim = 15\n"), HasSubstr("head_dim is 15"));
  EXPECT_THAT(read_shape("llama-9").error().line(),
              HasSubstr("known are falcon-40b, falcon-40b-qkv-relu, falcon-7b"));
  EXPECT_EQ(read_shape("/no/such.toml").code(), Code::not_found);
  EXPECT_EQ(read_shape("../models/llama-2-7b").code(), Code::not_found);
}

}  // namespace
}  // namespace tierd
