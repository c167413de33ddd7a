#include "core/engine/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tierd {

// Checked before the first chunk is computed, not in the middle.
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

Result<std::span<const float>> Session::append(std::span<const uint32_t> tokens,
                                               const std::function<void(size_t)>& fed) {
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
    if (fed) fed(chunk.size());
    if (tokens.empty()) return logits->first(engine_.vocab_size());
  }
}

Status Session::append_with_logits(std::span<const uint32_t> tokens,
                                   const std::function<void(size_t, std::span<const float>)>& each) {
  TIERD_TRY(check_room(tokens.size()));
  const uint32_t most = std::min(engine_.max_rows(), engine_.logit_rows());
  for (size_t done = 0; done < tokens.size();) {
    const auto chunk = tokens.subspan(done, std::min<size_t>(most, tokens.size() - done));
    std::vector<uint32_t> wanted(chunk.size());
    std::iota(wanted.begin(), wanted.end(), 0u);
    TIERD_ASSIGN(const std::span<const float> logits, step(chunk, wanted, true));
    const size_t stride = logits.size() / chunk.size();
    for (size_t i = 0; i < chunk.size(); ++i)
      each(done + i, logits.subspan(i * stride, engine_.vocab_size()));
    done += chunk.size();
  }
  return {};
}

Result<size_t> Session::append_guesses(std::span<const uint32_t> tokens,
                                       const std::function<bool(size_t, std::span<const float>)>& each) {
  TIERD_CHECK(!tokens.empty() && tokens.size() <= std::min(engine_.max_rows(), engine_.logit_rows()));
  TIERD_TRY(check_room(tokens.size()));
  std::vector<uint32_t> wanted(tokens.size());
  std::iota(wanted.begin(), wanted.end(), 0u);
  const size_t before = tokens_.size();
  TIERD_ASSIGN(const std::span<const float> logits, step(tokens, wanted, false));
  const size_t stride = logits.size() / tokens.size();
  size_t kept = 1;
  while (each(kept - 1, logits.subspan((kept - 1) * stride, engine_.vocab_size())) && kept < tokens.size())
    ++kept;
  truncate(before + kept);
  if (tokens.size() > 1) engine_.rows_kept(static_cast<uint32_t>(tokens.size()), static_cast<uint32_t>(kept));
  return kept;
}

// The KV cache is unchanged: a position is written before it is read again.
void Session::truncate(size_t tokens) {
  TIERD_CHECK(tokens <= tokens_.size());
  tokens_.resize(tokens);
}

}  // namespace tierd
