// Checks that every configuration of configs/ gives the same bits as before. For each instruction set,
// digests.json has the digest of the logits of each golden model and of the demo model, and the demo's greedy
// text. A change of the kernel or of a layout must leave the digests alone. A change of the order of
// arithmetic needs new ones:
//
//   TIERD_KEEP_DIGESTS=tests/e2e/digests.json build/dev/tests/e2e_digests_test
//
// This writes the digests of every instruction set of the machine it runs on and keeps the others.
#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/checksum.h"
#include "tests/e2e/golden_model.h"
#include "tests/e2e/shipped_configuration.h"
#include "tiers/compute/kernels.h"

namespace tierd {
namespace {

constexpr const char* kDigests = TIERD_SOURCE_DIR "/tests/e2e/digests.json";
constexpr uint32_t kPrompt = 8;  // tokens fed as one batch; the others are fed one by one

// Returns "hybrid", "ablation/flash-3", …; sorted.
std::vector<std::string> configurations() {
  std::vector<std::string> names;
  for (const std::string folder : {"", "papers/", "ablation/", "gpu/"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kConfigs + folder)) {
      if (entry.path().extension() == ".toml") names.push_back(folder + entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct Said {
  std::vector<float> logits;
  std::vector<uint32_t> tokens;  // the generated tokens, each of the greatest logit
};

// Feeds the given tokens, then generates `more`.
Result<Said> run(const Config& config, std::span<const uint32_t> tokens, uint32_t more) {
  RuntimeOptions options;
  options.quiet = true;
  options.fit = true;
  options.logit_rows = kPrompt;
  TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, make_runtime(config, options));
  TIERD_TRY(runtime->load());
  Engine& engine = runtime->engine();
  std::vector<uint32_t> all(tokens.begin(), tokens.end());
  Said said;
  for (uint32_t done = 0; done < tokens.size() + more;) {
    const uint32_t given = done < tokens.size() ? static_cast<uint32_t>(tokens.size()) - done : 0;
    const uint32_t n = done == 0 ? std::min({kPrompt, given, engine.max_rows(), engine.logit_rows()}) : 1;
    TIERD_TRY(feed(engine, all, done, n, said.logits));
    done += n;
    if (done < all.size()) continue;
    const std::span<const float> last = std::span(said.logits).last(engine.vocab_size());
    all.push_back(static_cast<uint32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
  }
  TIERD_TRY(engine.drain());
  said.tokens.assign(all.begin() + static_cast<std::ptrdiff_t>(tokens.size()), all.end());
  return said;
}

std::string digest_of(const Said& said) {
  return checksum_text(checksum(std::as_bytes(std::span(said.logits))));
}

nlohmann::json kept_digests() {
  std::ifstream file(kDigests);
  return file.good() ? nlohmann::json::parse(file) : nlohmann::json::object();
}

// Returns the file to write new digests to. Empty: compare with the kept digests.
std::string keeps_in() {
  const char* path = std::getenv("TIERD_KEEP_DIGESTS");
  return path != nullptr ? path : "";
}

class Digests : public testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    cache_ = use_test_cache();
    digests_ = kept_digests();
  }
  static void TearDownTestSuite() {
    std::filesystem::remove_all(cache_);
    if (keeps_in().empty()) return;
    std::ofstream(keeps_in()) << digests_.dump(1) << "\n";
  }

  // Keeps `said` under `key` of an instruction set, or compares it with the kept value.
  static void digest(const std::string& kernels, const std::string& key, const nlohmann::json& said) {
    if (!keeps_in().empty()) {
      digests_[kernels][key] = said;
      return;
    }
    if (!digests_.contains(kernels)) GTEST_SKIP() << "no digests of " << kernels << " were kept";
    ASSERT_TRUE(digests_[kernels].contains(key)) << "no digest of '" << key << "' was kept";
    EXPECT_EQ(digests_[kernels][key], said) << key << " with " << kernels;
  }

  // Returns all instruction sets of this machine when digests are kept, else only tierd's default.
  static std::vector<std::string> instruction_sets() {
    if (keeps_in().empty()) return {std::string(best_kernels().name)};
    std::vector<std::string> names;
    for (const char* name : {"scalar", "avx2", "avx512-vnni"}) {
      if (kernels_by_name(name) != nullptr) names.push_back(name);
    }
    return names;
  }

  static inline std::string cache_;
  static inline nlohmann::json digests_;
};

TEST_P(Digests, GoldenModelsSayWhatTheyDid) {
  // Ablations differ in what is read and kept resident, GPU configurations in where weights are. A few models
  // show that as well as all.
  const bool few = GetParam().find('/') != std::string::npos;
  std::vector<std::string> models = golden_runs();
  if (few) models = {"gguf-llama-q4_0", "llama2", "mixtral", "opt-f16"};
  for (const std::string& model : models) {
    const Golden golden = read_golden(model);
    for (const std::string& kernels : instruction_sets()) {
      Config config = configuration(GetParam(), golden_path(model), false);
      config.kernels = kernels;
      const auto said = run(config, golden.tokens, 0);
      // A model may lack a layout. Whether it does is part of the digest.
      if (!said.ok() && said.code() != Code::unsupported) FAIL() << model << ": " << said.error().line();
      digest(kernels, GetParam() + " " + model, said.ok() ? digest_of(*said) : "unsupported");
    }
  }
}

TEST_P(Digests, TheDemoModelSaysWhatItDid) {
  // The tokens need not be a real text: some encode one byte, some several.
  std::vector<uint32_t> tokens;
  for (uint32_t i = 0; i < kDemoTokens / 2; ++i) tokens.push_back(300 + i * 97 % 1200);
  for (const std::string& kernels : instruction_sets()) {
    Config config = configuration(GetParam(), kDemo, true);
    config.kernels = kernels;
    const auto said = run(config, tokens, kDemoTokens);
    ASSERT_TRUE(said.ok()) << said.error().line();
    digest(kernels, GetParam() + " demo",
           {{"logits", digest_of(*said)}, {"tokens", fmt::to_string(fmt::join(said->tokens, " "))}});
  }
}

INSTANTIATE_TEST_SUITE_P(Configurations, Digests, testing::ValuesIn(configurations()), [](const auto& test) {
  std::string name = test.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
});

}  // namespace
}  // namespace tierd
