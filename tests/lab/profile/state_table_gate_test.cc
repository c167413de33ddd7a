// Tests Hermes' table of states as a gate, with parents that tier-profile has found.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/model/text/tokenizer.h"
#include "tests/e2e/shipped_configuration.h"
#include "tests/formats/files.h"
#include "tools/lab/profile/parents_file.h"

namespace tierd {
namespace {

constexpr uint32_t kText = 16;  // tokens of a prompt
constexpr uint32_t kWindow = 128;

std::vector<uint32_t> held_out(const Runtime& runtime) {
  const auto tokenizer = make_tokenizer(runtime.plan().store.manifest().vocab, kDemo);
  EXPECT_TRUE(tokenizer.ok());
  return (*tokenizer)->encode(file_text(std::string(kDemo) + "/held-out.txt"), false, false);
}

// Profiles parents on the end of the text, whose beginning is judged.
void profile_parents(const std::string& path) {
  constexpr uint32_t kWindows = 48;
  Config config;
  config.model = kDemo;
  config.layout = "neuron";
  config.context = kWindow;
  config.measure_every = 1;
  RuntimeOptions options;
  options.quiet = true;
  options.logit_rows = kWindow;
  auto plan = prepare_run(config, options);
  ASSERT_TRUE(plan.ok()) << plan.error().line();
  const SiteTable sites = plan->model.sites;
  auto file =
      ParentsFile::create(path, shape_text(plan->store.manifest().config), sites, kWindows * kWindow, true);
  ASSERT_TRUE(file.ok()) << file.error().line();
  options.observer = file->get();
  const auto runtime = Runtime::create(std::move(*plan), options);
  ASSERT_TRUE(runtime.ok() && (*runtime)->load().ok());
  const std::vector<uint32_t> text = held_out(**runtime);
  for (uint32_t window = 1; window <= kWindows; ++window) {
    const std::span<const uint32_t> tokens = std::span(text).last(window * kWindow).first(kWindow);
    std::vector<float> logits;
    ASSERT_TRUE(feed((*runtime)->engine(), tokens, 0, kWindow, logits).ok());
  }
  ASSERT_TRUE((*runtime)->engine().drain().ok());
  ASSERT_TRUE((*file)->finish().ok());
}

// The perplexity of held-out text, where each window begins with a prompt and continues token by token, and
// the table's metrics on its rule.
struct Judged {
  double perplexity = 0;
  std::map<std::string, double> table;
};
Judged judge(Config config) {
  constexpr uint32_t kWindows = 4;
  config.threads = 1;
  config.bind = false;
  config.context = kWindow;
  RuntimeOptions options;
  options.quiet = true;
  options.fit = true;
  options.logit_rows = kText;
  Judged judged;
  auto made = make_runtime(config, options);
  EXPECT_TRUE(made.ok()) << made.error().line();
  if (!made.ok()) return judged;
  Runtime& runtime = **made;
  EXPECT_TRUE(runtime.load().ok());
  const std::vector<uint32_t> text = held_out(runtime);
  Engine& engine = runtime.engine();
  double lost = 0;
  for (uint32_t window = 0; window < kWindows; ++window) {
    const std::span<const uint32_t> tokens = std::span(text).subspan(window * 4 * kWindow, kWindow);
    std::vector<float> logits;
    EXPECT_TRUE(feed(engine, tokens, 0, kText, logits).ok());
    for (uint32_t i = kText; i < kWindow; ++i) {
      const std::span<const float> of = std::span(logits).last(engine.vocab_size());
      double sum = 0;
      for (const float logit : of) sum += std::exp(static_cast<double>(logit));
      lost += std::log(sum) - of[tokens[i]];
      EXPECT_TRUE(feed(engine, tokens, i, 1, logits).ok());
    }
  }
  EXPECT_TRUE(engine.drain().ok());
  judged.perplexity = std::exp(lost / (kWindows * (kWindow - kText)));
  judged.table = runtime.strategies().instance("heat").metrics();
  return judged;
}

// Gating by the table is lossy. The rule as printed is right for nearly all neurons, because they do not
// fire, and finds few of those that do. A rule that keeps a neuron for fifteen tokens costs little.
TEST(StateTableAsGate, TheLiteralRuleFindsNothing) {
  const std::string parents = testing::TempDir() + "parents-" + std::to_string(getpid()) + ".safetensors";
  const std::string cache = use_test_cache();
  profile_parents(parents);
  Config hermes = configuration("hermes", kDemo, true);
  hermes.tier("gpu").capacity = "60%";  // the weights that every step uses whole, and copies
  const auto gated = [&](std::vector<Setting> settings) {
    Config config = hermes;
    config.predictor = {"state-table"};
    config.predictor.tensors = parents;
    config.predictor.settings = std::move(settings);
    config.heat = {};
    config.measure_every = 1;
    return judge(config);
  };
  const Judged dense = judge(hermes);
  const Judged literal = gated({{"first", std::string("predicted"), "test"}});
  const Judged staying = gated({{"up", int64_t{15}, "test"}, {"threshold", int64_t{0}, "test"}});
  std::filesystem::remove(parents);
  std::filesystem::remove_all(cache);
  EXPECT_GT(literal.table.at("accuracy"), 0.95);
  EXPECT_LT(literal.table.at("recall"), 0.1);
  EXPECT_GT(literal.perplexity, 10 * dense.perplexity);
  EXPECT_GT(staying.table.at("recall"), 0.6);
  EXPECT_LT(staying.perplexity, 1.03 * dense.perplexity);
  RecordProperty("dense", std::to_string(dense.perplexity));
  RecordProperty("literal", std::to_string(literal.perplexity));
  RecordProperty("staying", std::to_string(staying.perplexity));
}

}  // namespace
}  // namespace tierd
