// What a suite found: rules that hold, and of each broken one the first example.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tierd {

class Report {
 public:
  struct Rule {
    std::string text;
    uint64_t checks = 0;
    std::string broken;  // the first example; empty: it holds
  };

  // `example` is asked only for the first time that the rule is broken.
  void check(const char* rule, bool holds, const std::function<std::string()>& example);

  // A plugin declined to be made where it may.
  void refused(const std::string& why) { refusal_ = why; }
  const std::string& last_refusal() const { return refusal_; }
  uint64_t checks_of(const char* rule) const;
  // Whether no check has broken it.
  bool holds(const char* rule) const;

  const std::vector<Rule>& rules() const { return rules_; }
  bool ok() const;
  // One line a rule; of those that hold only with `all`.
  std::string text(bool all) const;

 private:
  Rule& rule(const char* text);
  std::vector<Rule> rules_;
  std::string refusal_;
};

}  // namespace tierd
