// Makes recent tokens less probable.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>

namespace tierd {

// The names and formulas are llama.cpp's.
struct PenaltyOptions {
  int64_t repeat_last_n = 64;   // number of recent tokens considered, prompt included; 0: none, -1: all
  float repeat_penalty = 1;     // divides a positive logit of such a token, multiplies a negative one
  float presence_penalty = 0;   // subtracted once from the logit of such a token
  float frequency_penalty = 0;  // subtracted for each occurrence

  bool active() const {
    return repeat_last_n != 0 && (repeat_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0);
  }
};

// The bound of logits in arithmetic, so that no sum or quotient of clients' options becomes infinite.
inline constexpr float kLargestLogit = 1e30f;

class Penalties {
 public:
  explicit Penalties(const PenaltyOptions& options) : options_(options) {}

  // Adds the next token of the text.
  void accept(uint32_t token);
  // `logits`: [vocab], finite or -infinity; infinite ones are unchanged. Tokens beyond it are ignored.
  void apply(std::span<float> logits) const;

  bool active() const { return options_.active(); }

 private:
  PenaltyOptions options_;
  std::deque<uint32_t> last_;                      // empty if all tokens count
  std::unordered_map<uint32_t, uint32_t> counts_;  // occurrences among the considered tokens
};

}  // namespace tierd
