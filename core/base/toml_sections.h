// Reads numbers from sections of a TOML file that is not trusted. Every key is required, no unknown one is
// accepted, and the first error is reported.
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
  // `table` must outlive this; `file` names it in errors, which are `invalid_argument` with the line.
  TomlSections(const toml::table& table, std::string file) : table_(table), file_(std::move(file)) {}

  // Starts a section: the following calls read its keys, up to `end_section`.
  void section(std::string_view name);
  // The same for an optional section: returns false if it is missing; then read nothing from it.
  bool optional_section(std::string_view name);
  void number(std::string_view key, double& field, double least, double most);
  void number(std::string_view key, uint32_t& field, uint32_t least, uint32_t most);
  void end_section();
  // Call it after the last section.
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
