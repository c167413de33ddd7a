// Makes tokens that were said lately less probable.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>

namespace tierd {

// By llama.cpp's names and formulas.
struct PenaltyOptions {
  int64_t repeat_last_n = 64;   // tokens that are looked back on, prompt included; 0: none, -1: all
  float repeat_penalty = 1;     // divides a positive logit of such a token, multiplies a negative one
  float presence_penalty = 0;   // subtracted once from the logit of such a token
  float frequency_penalty = 0;  // subtracted each time that it was said

  bool active() const {
    return repeat_last_n != 0 && (repeat_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0);
  }
};

// Where arithmetic on logits ends, so that no sum or quotient of what clients ask for becomes infinite.
inline constexpr float kLargestLogit = 1e30f;

class Penalties {
 public:
  explicit Penalties(const PenaltyOptions& options) : options_(options) {}

  // The next token of the text.
  void accept(uint32_t token);
  // `logits`: [vocab], finite or -infinity, and so they stay. Tokens beyond it are passed over.
  void apply(std::span<float> logits) const;

  bool active() const { return options_.active(); }

 private:
  PenaltyOptions options_;
  std::deque<uint32_t> last_;                      // nothing where all count
  std::unordered_map<uint32_t, uint32_t> counts_;  // of those
};

}  // namespace tierd
