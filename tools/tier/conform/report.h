// The result of a suite: the rules, and for each broken one the first example.
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

  // `example` is called only for the first check that breaks the rule.
  void check(const char* rule, bool holds, const std::function<std::string()>& example);

  // Records that a plugin refused to be made in a case in which it may.
  void refused(const std::string& why) { refusal_ = why; }
  const std::string& last_refusal() const { return refusal_; }
  uint64_t checks_of(const char* rule) const;
  // Returns whether no check has broken the rule.
  bool holds(const char* rule) const;

  const std::vector<Rule>& rules() const { return rules_; }
  bool ok() const;
  // Returns one line a rule; rules that hold only if `all`.
  std::string text(bool all) const;

 private:
  Rule& rule(const char* text);
  std::vector<Rule> rules_;
  std::string refusal_;
};

}  // namespace tierd
