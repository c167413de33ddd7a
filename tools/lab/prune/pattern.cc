#include "tools/lab/prune/pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tierd {
namespace {

// Parses the whole text as a number; 0 if it is not one.
uint32_t number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size() ? value : 0;
}

}  // namespace

uint64_t Pattern::pruned_of(uint64_t weights) const {
  return static_cast<uint64_t>(static_cast<double>(weights) * sparsity);
}

Result<Pattern> parse_groups(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const uint32_t kept = number(text.substr(0, colon)), group = number(text.substr(colon + 1));
    if (kept > 0 && kept < group && group <= kMostOfGroup)
      return Pattern{1.0 - static_cast<double>(kept) / group, kept, group};
  }
  return Error{Code::invalid_argument, "--nm",
               fmt::format("\"{}\", expected N:M such as 2:4 (N of M weights stay): 0 < N < M <= {}", text,
                           kMostOfGroup)};
}

Result<Pattern> pattern_of_share(double sparsity) {
  if (sparsity > 0 && sparsity < 1) return Pattern{sparsity};
  return Error{Code::invalid_argument, "--share",
               fmt::format("{}, expected the share of zeros, above 0 and below 1", sparsity)};
}

void mark_smallest(std::span<const float> scores, uint64_t count, std::span<uint8_t> pruned) {
  std::fill(pruned.begin(), pruned.end(), uint8_t{0});
  if (count == 0) return;
  std::vector<float> sorted(scores.begin(), scores.end());
  const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(sorted.begin(), last, sorted.end());
  const float largest = *last;
  // The number of weights equal to the threshold that are pruned, beside all smaller ones.
  uint64_t equal = count;
  for (const float score : scores) equal -= score < largest ? 1 : 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] < largest) {
      pruned[i] = 1;
    } else if (scores[i] == largest && equal > 0) {
      pruned[i] = 1;
      --equal;
    }
  }
}

void mark_in_groups(std::span<const float> scores, const Pattern& pattern, std::span<uint8_t> pruned) {
  for (size_t at = 0; at < scores.size(); at += pattern.group) {
    mark_smallest(scores.subspan(at, pattern.group), pattern.group - pattern.kept,
                  pruned.subspan(at, pattern.group));
  }
}

}  // namespace tierd
