// Numbers in sections of a TOML file that nobody trusts. Every key has to be there, none may be unknown, and
// the first error is what is told.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "core/base/result.h"

namespace tierd {

class TomlSections {
 public:
  // `table` outlives this; `file` names it in errors, which are `invalid_argument` with the line.
  TomlSections(const toml::table& table, std::string file) : table_(table), file_(std::move(file)) {}

  // What follows are its keys, up to `end_section`.
  void section(std::string_view name);
  // The same of a section that may be missing: returns false then, and nothing is to be read of it.
  bool optional_section(std::string_view name);
  void number(std::string_view key, double& field, double least, double most);
  void number(std::string_view key, uint32_t& field, uint32_t least, uint32_t most);
  void end_section();
  // After the last section.
  Status end();

 private:
  const toml::node* find(std::string_view key);
  void fail(const toml::node* node, std::string detail);

  const toml::table& table_;
  std::string file_;
  std::string_view section_;
  const toml::table* fields_ = nullptr;
  std::vector<std::string_view> sections_;
  std::vector<std::string_view> keys_;  // of the section
  Status status_;
};

}  // namespace tierd
