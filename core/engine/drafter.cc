#include "core/engine/drafter.h"

#include <algorithm>

namespace tierd {
namespace {

constexpr size_t kLongestMatch = 3;  // tokens

}  // namespace

Result<std::vector<uint32_t>> PromptLookup::draft(std::span<const uint32_t> tokens, size_t most) {
  for (size_t length = std::min(kLongestMatch, tokens.size()); length > 0; --length) {
    const auto end = tokens.last(length);
    const auto before = tokens.first(tokens.size() - 1);  // a later token must follow
    const auto found = std::find_end(before.begin(), before.end(), end.begin(), end.end());
    if (found == before.end()) continue;
    const auto follows = tokens.subspan(static_cast<size_t>(found - before.begin()) + length);
    const auto some = follows.first(std::min(most, follows.size()));
    return std::vector<uint32_t>(some.begin(), some.end());
  }
  return std::vector<uint32_t>();
}

Result<std::vector<uint32_t>> ModelDrafter::draft(std::span<const uint32_t> tokens, size_t most) {
  // The last guesses may have been wrong; at least one token is appended, for its logits.
  const auto known = session_.tokens();
  const auto [differs, ignored] = std::mismatch(known.begin(), known.end(), tokens.begin(), tokens.end());
  session_.truncate(std::min(static_cast<size_t>(differs - known.begin()), tokens.size() - 1));
  const size_t room = engine_.context() > tokens.size() ? engine_.context() - tokens.size() : 0;
  std::vector<uint32_t> guesses;
  if (tokens.size() > engine_.context()) return guesses;
  std::span<const uint32_t> next = tokens.subspan(session_.position());
  while (guesses.size() < std::min(most, room + 1)) {
    TIERD_ASSIGN(const std::span<const float> logits, session_.append(next));
    guesses.push_back(static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    if (session_.position() == engine_.context()) break;
    next = std::span(guesses).last(1);
  }
  return guesses;
}

}  // namespace tierd
