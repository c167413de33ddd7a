#include "tools/evaluation/text_windows.h"

#include <algorithm>

#include "core/base/file.h"

namespace tierd {

std::vector<std::vector<uint32_t>> text_windows(const Tokenizer& tokenizer, const std::string& text,
                                                const TextRange& range, uint32_t context) {
  const std::vector<uint32_t> before = tokenizer.encode("", true, false);
  const std::vector<uint32_t> tokens = tokenizer.encode(text, false, false);
  std::vector<std::vector<uint32_t>> windows;
  if (context <= before.size()) return windows;
  const uint64_t room = context - before.size();
  uint64_t at = std::min<uint64_t>(range.skip, tokens.size());
  const uint64_t left = tokens.size() - at;
  const uint64_t end = at + (range.tokens == 0 ? left : std::min(range.tokens, left));
  while (at < end) {
    const uint64_t n = std::min(room, end - at);
    std::vector<uint32_t> window = before;
    const auto from = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    window.insert(window.end(), from, from + static_cast<std::ptrdiff_t>(n));
    if (window.size() > 1) windows.push_back(std::move(window));
    at += n;
  }
  return windows;
}

Result<std::vector<std::vector<uint32_t>>> read_text_windows(const Tokenizer& tokenizer,
                                                             const std::string& file, const TextRange& range,
                                                             uint32_t context) {
  TIERD_ASSIGN(const std::string text, read_whole_file(file, kLongestText));
  std::vector<std::vector<uint32_t>> windows = text_windows(tokenizer, text, range, context);
  if (windows.empty()) return Error{Code::invalid_argument, file, "the text has too few tokens"};
  return windows;
}

}  // namespace tierd
