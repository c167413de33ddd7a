#include "core/model/text/digit_groups.h"

#include <algorithm>
#include <array>

namespace tierd {
namespace {

constexpr size_t kGroup = 3;

struct GroupExpression {
  std::string_view expression;
  const char* runs;
  bool at_ends;
};
constexpr std::array<GroupExpression, 3> kGroupExpressions = {{
    {R"(\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))", R"(\p{N}++)", true},
    // A run that a letter follows has no boundary at its end.
    {R"(\d{1,3}(?=(?:\d{3})*\b))", R"((?<!\d)\d++(?!\w))", true},
    {R"((?=(\d{3})+(?!\d)))", R"(\d++)", false},
}};

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

}  // namespace

std::optional<DigitGroups> DigitGroups::of(std::string_view expression) {
  const auto known = std::ranges::find(kGroupExpressions, expression, &GroupExpression::expression);
  if (known == kGroupExpressions.end()) return std::nullopt;
  return DigitGroups(Expression::known(known->runs), known->at_ends);
}

std::vector<size_t> DigitGroups::cuts(std::string_view text) const {
  std::vector<size_t> positions;
  for (Expression::Matches run(runs_, text); run.next();) {
    const size_t first = positions.size();
    if (at_ends_) positions.push_back(run.end());
    size_t digits = 0;
    for (size_t at = run.end(); at-- > run.begin();) {
      if (!begins_character(text[at])) continue;
      const bool begins_run = at_ends_ && at == run.begin();
      if (++digits % kGroup == 0 || begins_run) positions.push_back(at);
    }
    std::reverse(positions.begin() + static_cast<std::ptrdiff_t>(first), positions.end());
  }
  return positions;
}

}  // namespace tierd
