#include "tools/tier/conform/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierd {

Report::Rule& Report::rule(const char* text) {
  const auto found =
      std::find_if(rules_.begin(), rules_.end(), [&](const Rule& r) { return r.text == text; });
  return found != rules_.end() ? *found : rules_.emplace_back(Rule{text, 0, ""});
}

void Report::check(const char* text, bool holds, const std::function<std::string()>& example) {
  Rule& one = rule(text);
  ++one.checks;
  if (!holds && one.broken.empty()) one.broken = example();
}

uint64_t Report::checks_of(const char* text) const {
  for (const Rule& rule : rules_) {
    if (rule.text == text) return rule.checks;
  }
  return 0;
}

bool Report::holds(const char* text) const {
  return std::none_of(rules_.begin(), rules_.end(),
                      [&](const Rule& rule) { return rule.text == text && !rule.broken.empty(); });
}

bool Report::ok() const {
  return std::all_of(rules_.begin(), rules_.end(), [](const Rule& r) { return r.broken.empty(); });
}

std::string Report::text(bool all) const {
  std::string text;
  for (const Rule& one : rules_) {
    if (!one.broken.empty()) {
      text += fmt::format("BROKEN  {}: {}\n", one.text, one.broken);
    } else if (all) {
      text += fmt::format("ok      {} ({} checks)\n", one.text, one.checks);
    }
  }
  return text;
}

}  // namespace tierd
