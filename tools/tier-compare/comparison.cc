#include "tools/tier-compare/comparison.h"

#include <algorithm>
#include <span>

#include "core/engine/session.h"

namespace tierd {

Result<Loss> compare_on(Engine& reference, Engine& subject, const std::vector<std::vector<uint32_t>>& windows,
                        const std::function<void(uint64_t)>& progress) {
  Loss loss;
  Session first(reference, 0), second(subject, 0);
  const size_t vocab = reference.vocab_size();
  const size_t most =
      std::min({reference.max_rows(), reference.logit_rows(), subject.max_rows(), subject.logit_rows()});
  std::vector<float> expected(most * vocab);
  for (const std::vector<uint32_t>& window : windows) {
    first.clear();
    second.clear();
    const std::span tokens(window);
    // The last one is only predicted.
    for (size_t at = 0; at + 1 < tokens.size();) {
      const auto chunk = tokens.subspan(at, std::min(most, tokens.size() - 1 - at));
      TIERD_TRY(first.append_with_logits(chunk, [&](size_t i, std::span<const float> logits) {
        std::copy(logits.begin(), logits.end(), expected.begin() + static_cast<std::ptrdiff_t>(i * vocab));
      }));
      TIERD_TRY(second.append_with_logits(chunk, [&](size_t i, std::span<const float> logits) {
        loss.add(std::span<const float>(expected).subspan(i * vocab, vocab), logits, tokens[at + i + 1]);
      }));
      at += chunk.size();
      progress(chunk.size());
    }
  }
  return loss;
}

}  // namespace tierd
