#include "core/engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tierd {

// Before the first chunk is computed, not in the middle.
Status Session::check_room(size_t tokens) const {
  if (position() + tokens <= engine_.context()) return {};
  return Error{Code::no_space, "context",
               fmt::format("{} tokens do not fit a context of {}; give a larger one (-c)",
                           position() + tokens, engine_.context())};
}

Status Session::begin() {
  if (begun_) return {};
  TIERD_TRY(engine_.begin_sequence(sequence_));
  begun_ = true;
  return {};
}

void Session::end() {
  if (begun_) engine_.end_sequence(sequence_);
  begun_ = false;
}

Result<std::span<const float>> Session::step(std::span<const uint32_t> tokens,
                                             std::span<const uint32_t> wanted, bool prefill) {
  std::vector<RowInfo> rows;
  for (const uint32_t token : tokens) {
    if (token >= engine_.vocab_size()) {
      return Error{Code::invalid_argument, "token",
                   fmt::format("{} is not below the vocabulary's size {}", token, engine_.vocab_size())};
    }
    rows.push_back({token, position() + static_cast<uint32_t>(rows.size()), sequence_, 0});
  }
  TIERD_TRY(begin());
  TIERD_ASSIGN(const std::span<const float> logits, engine_.step(rows, wanted, prefill));
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return logits;
}

Result<std::span<const float>> Session::append(std::span<const uint32_t> tokens) {
  TIERD_CHECK(!tokens.empty());
  TIERD_TRY(check_room(tokens.size()));
  const size_t before = tokens_.size();
  const bool prefill = tokens.size() > 1;
  for (;;) {
    const auto chunk = tokens.first(std::min<size_t>(tokens.size(), engine_.max_rows()));
    tokens = tokens.subspan(chunk.size());
    const auto last = static_cast<uint32_t>(chunk.size() - 1);
    const std::span<const uint32_t> wanted(&last, tokens.empty() ? 1 : 0);
    auto logits = step(chunk, wanted, prefill);
    if (!logits.ok()) {
      tokens_.resize(before);
      return logits;
    }
    if (tokens.empty()) return logits->first(engine_.vocab_size());
  }
}

Result<Session::Loss> Session::append_with_loss(std::span<const uint32_t> tokens) {
  Loss loss;
  if (!tokens.empty()) TIERD_TRY(check_room(tokens.size() - 1));
  const uint32_t vocab = engine_.vocab_size();
  const uint32_t most = std::min(engine_.max_rows(), engine_.logit_rows());
  for (size_t done = 0; done + 1 < tokens.size();) {
    // The last token is only predicted, never fed.
    const auto chunk = tokens.subspan(done, std::min<size_t>(most, tokens.size() - 1 - done));
    std::vector<uint32_t> wanted(chunk.size());
    for (uint32_t i = 0; i < wanted.size(); ++i) wanted[i] = i;
    TIERD_ASSIGN(const std::span<const float> logits, step(chunk, wanted, true));
    const size_t stride = logits.size() / chunk.size();
    for (size_t i = 0; i < chunk.size(); ++i) {
      const std::span<const float> row = logits.subspan(i * stride, vocab);
      const float top = *std::max_element(row.begin(), row.end());
      double sum = 0;
      for (const float x : row) sum += std::exp(static_cast<double>(x) - top);
      loss.nats += std::log(sum) + top - row[tokens[done + i + 1]];
      ++loss.tokens;
    }
    done += chunk.size();
  }
  return loss;
}

}  // namespace tierd
