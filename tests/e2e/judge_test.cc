// tier-compare and the server compute the same logits for the same text and configuration, so the loss
// measured is that of the served model.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/server.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr size_t kTokens = 64;  // tokens after the token that begins the text

class Judge : public Server {
 protected:
  // Half of the demo's weights are resident, and a mask by residency leaves out half of its channels.
  static std::vector<std::string> half_left_out() {
    return {"-m",       kDemo,
            "--config", TIERD_SOURCE_DIR "/configs/activeflow.toml",
            "-t",       "1",
            "-c",       "128",
            "--set",    "tiers.dram.capacity=50%",
            "--set",    "tiers.flash.gap=16KiB",
            "--set",    "run.ubatch=1"};
  }
};

TEST_F(Judge, PrintsThePerplexityThatIsServed) {
  std::vector<std::string> judged = half_left_out();
  const std::string text = TIERD_SOURCE_DIR "/LICENSE";
  for (const std::string& argument :
       {text, std::string("--tokens"), std::to_string(kTokens), std::string("--json"), std::string("-q")})
    judged.push_back(argument);
  const Ended compared = run_program(TIERD_BIN_COMPARE, judged);
  ASSERT_EQ(compared.status, 0) << compared.err;
  const json verdict = json::parse(compared.out, nullptr, false);
  EXPECT_LT(verdict["used"]["neurons"], 1.0) << "nothing was left out";

  std::vector<std::string> served = half_left_out();
  served.insert(served.begin(), "serve");
  // The loss may be above the limit that tierd accepts without --force.
  for (const char* const argument : {"--port", "0", "-np", "1", "--force"}) served.emplace_back(argument);
  start_program(served);
  const std::string whole = file_text(text);
  json tokens = json::parse(post("/tokenize", {{"content", whole}, {"add_special", true}}).body)["tokens"];
  tokens.erase(tokens.begin() + kTokens + 1, tokens.end());
  const json scored = complete(
      {{"prompt", tokens}, {"max_tokens", 1}, {"echo", true}, {"logprobs", 1}})["choices"][0]["logprobs"];
  double sum = 0;
  for (size_t i = 1; i <= kTokens; ++i) sum += scored["token_logprobs"][i].get<double>();
  EXPECT_NEAR(std::exp(-sum / kTokens), verdict["perplexity"].get<double>(), 1e-4);
}

}  // namespace
}  // namespace tierd
