// Runs a toy mixture from a store of its own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/store/writer.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/golden_model.h"
#include "tests/e2e/mixture.h"

namespace tierd {

// Parameter: the model family.
class StreamedMixture : public testing::TestWithParam<std::string> {
 protected:
  StreamedMixture(Encoding encoding, const WriteOptions& options) {
    auto made = SyntheticSource::make(mixture(GetParam()), encoding, 7);
    EXPECT_TRUE(made.ok()) << made.error().line();
    source_ = std::move(*made);
    const Status written = write_store(*source_, store(), options);
    EXPECT_TRUE(written.ok()) << written.error().line();
    Random random(5);
    for (uint32_t i = 0; i < 40; ++i) tokens_.push_back(random.below(300));
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::string store() const { return path("store"); }

  Config config(const std::string& cache, const std::string& capacity) const {
    Config config;
    config.model = store();
    config.context = 48;
    config.threads = 1;
    config.bind = false;
    config.cache.name = cache;
    config.tier("dram").capacity = capacity;
    return config;
  }

  // Feeds the first `count` tokens, `first` of them as a prompt, the others one a step. Returns all logits.
  // Calls `look` with the runtime after the last step.
  template <class Look>
  std::vector<float> play(const Config& config, uint32_t first, size_t count, Look look) const {
    RuntimeOptions options;
    options.quiet = true;
    options.logit_rows = std::max(first, 1u);
    std::vector<float> logits;
    auto runtime = make_runtime(config, options);
    EXPECT_TRUE(runtime.ok()) << runtime.error().line();
    if (!runtime.ok()) return logits;
    EXPECT_TRUE((*runtime)->load().ok());
    Engine& engine = (*runtime)->engine();
    for (uint32_t at = 0; at < count;) {
      const uint32_t n = at == 0 ? std::min(first, engine.max_rows()) : 1;
      const Status fed = feed(engine, tokens_, at, n, logits);
      EXPECT_TRUE(fed.ok()) << fed.error().line();
      at += n;
    }
    EXPECT_TRUE(engine.drain().ok());
    look(**runtime);
    return logits;
  }

  std::unique_ptr<TensorSource> source_;
  std::vector<uint32_t> tokens_;

 private:
  TempFolder folder_;
};

}  // namespace tierd
