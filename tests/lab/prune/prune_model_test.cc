// Prunes whole small models, and tests the changed and unchanged weights and the refusals.
#include "tools/lab/prune/prune_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/formats/gguf_writer.h"
#include "core/store/source.h"
#include "core/store/store.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/lab/prune/random_matrix.h"
#include "tests/store/memory_source.h"
#include "tools/lab/prune/input_statistics.h"
#include "tools/lab/prune/layer_forward.h"
#include "tools/lab/prune/layer_weights.h"
#include "tools/lab/prune/masks.h"

namespace tierd {
namespace {

using testing::HasSubstr;

std::vector<std::vector<uint32_t>> windows_for(const TensorSource& source) {
  Random random(1);
  return random_windows(random, 4, 30, source.config().vocab_size);
}

PruneOptions options_of(PruneMethod method, const Pattern& pattern = {}) {
  PruneOptions options;
  options.method = method;
  options.pattern = pattern;
  options.threads = 2;
  options.quiet = true;
  return options;
}

class PruneModel : public testing::Test {
 protected:
  Result<std::unique_ptr<PrunedSource>> prune(const TensorSource& source, const PruneOptions& options) const {
    return prune_model(source, windows_for(source), options, out());
  }
  std::string out() const { return folder_.path() + "/out"; }
  const TempFolder folder_;
};

TEST_F(PruneModel, TheMatricesOfTheLayersLoseTheirShareAndNothingElseChanges) {
  for (const ModelConfig& config : {small_llama(), small_opt()}) {
    const MemorySource source(config, Encoding::f32);
    for (const PruneMethod method : {PruneMethod::magnitude, PruneMethod::wanda, PruneMethod::sparsegpt}) {
      for (const Pattern& pattern : {Pattern{0.5}, *parse_groups("2:4")}) {
        const auto pruned = prune(source, options_of(method, pattern));
        ASSERT_TRUE(pruned.ok()) << pruned.error().line();
        EXPECT_NEAR((*pruned)->share_of_zeros(), 0.5, 0.01);
        std::vector<std::string> matrices;
        for (uint32_t layer = 0; layer < config.n_layers; ++layer)
          std::ranges::copy(layer_matrices(source, layer), std::back_inserter(matrices));
        for (const TensorInfo& tensor : source.tensors()) {
          const std::vector<float> before = *source.read_f32(tensor);
          const std::vector<float> after = *(*pruned)->read_f32(*(*pruned)->find(tensor.name));
          if (std::ranges::find(matrices, tensor.name) == matrices.end()) {
            EXPECT_EQ(before, after) << tensor.name;
            continue;
          }
          const auto n = static_cast<double>(after.size());
          EXPECT_NEAR(static_cast<double>(std::ranges::count(after, 0.0f)) / n, 0.5, 0.03) << tensor.name;
          const bool only_chosen = method != PruneMethod::sparsegpt;
          for (size_t i = 0; only_chosen && i < after.size(); ++i)
            ASSERT_TRUE(after[i] == 0 || after[i] == before[i]) << tensor.name;
        }
      }
    }
  }
}

TEST_F(PruneModel, LaterLayersSeeWhatThePrunedOnesBeforeThemGive) {
  const MemorySource source(small_llama(), Encoding::f32);
  const auto pruned = prune(source, options_of(PruneMethod::wanda));
  ASSERT_TRUE(pruned.ok());
  MatrixTeam team(1);
  auto first = read_layer(**pruned, 0), second = read_layer(source, 1);
  ASSERT_TRUE(first.ok() && second.ok());
  InputStatistics before(source.config().d_model, false);  // of layer 1's attention
  const LayerForward through_first(source.config(), *first, team),
      through_second(source.config(), *second, team);
  for (const auto& window : windows_for(source)) {
    auto hidden = embed(source, window);
    ASSERT_TRUE(hidden.ok());
    through_first.run(*hidden, [](LayerInput, const TokenRows&) {});
    through_second.run(*hidden, [&](LayerInput input, const TokenRows& x) {
      if (input == LayerInput::attention) before.add(x, team);
    });
  }
  prune_by_wanda(second->q.weight, before.norms(), {0.5});
  EXPECT_EQ(*(*pruned)->read_f32(*(*pruned)->find("layers.1.q")), second->q.weight);
}

TEST_F(PruneModel, TheBitsDependOnNoNumberOfThreads) {
  const MemorySource source(small_opt(), Encoding::f16);
  for (const PruneMethod method : {PruneMethod::wanda, PruneMethod::sparsegpt}) {
    PruneOptions options = options_of(method);
    options.smooth = 0.5f;
    const auto two = prune(source, options);
    options.threads = 1;
    const auto one = prune(source, options);
    ASSERT_TRUE(one.ok() && two.ok());
    EXPECT_EQ((*one)->fingerprint(), (*two)->fingerprint());
    EXPECT_NE((*one)->fingerprint(), source.fingerprint());
  }
}

TEST_F(PruneModel, BlocksBecomeF16AndFloatsStay) {
  for (const Encoding encoding :
       {Encoding::f32, Encoding::f16, Encoding::bf16, Encoding::q8_0, Encoding::q4_0}) {
    const MemorySource source(small_llama(), encoding);
    PruneOptions options = options_of(PruneMethod::sparsegpt);
    options.smooth = 0.5f;
    const auto pruned = prune(source, options);
    ASSERT_TRUE(pruned.ok()) << pruned.error().line();
    EXPECT_EQ((*pruned)->find("layers.1.down")->encoding, is_quantized(encoding) ? Encoding::f16 : encoding);
    EXPECT_EQ((*pruned)->find("layers.1.ffn_norm")->encoding, Encoding::f32);
    EXPECT_EQ((*pruned)->find("embed")->encoding, encoding);
    const std::string path = out() + ".gguf";
    ASSERT_TRUE(write_gguf(**pruned, path, true).ok());
    const auto read = open_source(path);
    ASSERT_TRUE(read.ok()) << read.error().line();
    for (const TensorInfo& tensor : (*pruned)->tensors())
      EXPECT_EQ(*(*read)->read_f32(*(*read)->find(tensor.name)), *(*pruned)->read_f32(tensor)) << tensor.name;
    EXPECT_EQ((*read)->vocab()->pieces, source.vocab()->pieces);
  }
}

TEST_F(PruneModel, AStoreOfItInQ8KeepsTheZeros) {
  const MemorySource source(small_llama(), Encoding::f32);
  PruneOptions options = options_of(PruneMethod::wanda);
  options.smooth = 0.5f;
  const auto pruned = prune(source, options);
  ASSERT_TRUE(pruned.ok());
  const Status written = write_store(**pruned, out(), {.encoding = Encoding::q8_0, .quiet = true});
  ASSERT_TRUE(written.ok()) << written.error().line();
  const auto store = Store::open(out());
  ASSERT_TRUE(store.ok()) << store.error().line();
  EXPECT_TRUE(store->verify_all(true).ok());
  EXPECT_TRUE(store->manifest().has_vocab);
}

TEST_F(PruneModel, NothingIsLeftBesideWhatIsWritten) {
  const MemorySource source(small_llama(), Encoding::f32);
  const auto pruned = prune(source, options_of(PruneMethod::magnitude));
  ASSERT_TRUE(pruned.ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(PruneModel, WhatCannotBePrunedIsALine) {
  const auto line = [&](const TensorSource& source, const PruneOptions& options) {
    const auto pruned = prune(source, options);
    EXPECT_FALSE(pruned.ok());
    return pruned.ok() ? "" : pruned.error().line();
  };
  EXPECT_THAT(line(MemorySource(small_mixture(), Encoding::f32), options_of(PruneMethod::magnitude)),
              HasSubstr("is a mixture of experts"));
  ModelConfig normed = small_llama();
  normed.post_norms = true;
  EXPECT_THAT(line(MemorySource(normed, Encoding::f32), options_of(PruneMethod::magnitude)),
              HasSubstr("the layers of llama cannot be pruned or smoothed; expected norms of the inputs"));
  EXPECT_THAT(
      line(MemorySource(small_opt(), Encoding::f32), options_of(PruneMethod::wanda, *parse_groups("3:7"))),
      HasSubstr("the rows of layers.0.q have 72 inputs, expected a multiple of the 7 of --nm"));
  MemorySource broken(small_llama(), Encoding::f32);
  broken.broken_tensor = "layers.1.up";
  EXPECT_THAT(line(broken, options_of(PruneMethod::wanda)), HasSubstr("layers.1.up cannot be read"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace tierd
