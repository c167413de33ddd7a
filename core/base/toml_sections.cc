#include "core/base/toml_sections.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace tierd {
namespace {

bool is_one_of(const std::vector<std::string_view>& known, std::string_view key) {
  return std::find(known.begin(), known.end(), key) != known.end();
}

}  // namespace

void TomlSections::section(std::string_view name) {
  if (optional_section(name)) return;
  fail(table_.get(name), fmt::format("the section [{}] is missing", name));
}

bool TomlSections::optional_section(std::string_view name) {
  section_ = name;
  sections_.push_back(name);
  keys_.clear();
  const toml::node* node = table_.get(name);
  fields_ = node == nullptr ? nullptr : node->as_table();
  if (node != nullptr && fields_ == nullptr) fail(node, fmt::format("{} must be a section", name));
  return fields_ != nullptr;
}

void TomlSections::number(std::string_view key, double& field, double least, double most) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  const auto value = node->value<double>();
  if (!node->is_number() || !value || !(*value >= least && *value <= most))
    return fail(node, fmt::format("{} must be a number from {} to {}", key, least, most));
  field = *value;
}

void TomlSections::number(std::string_view key, uint32_t& field, uint32_t least, uint32_t most) {
  const toml::node* node = find(key);
  if (node == nullptr) return;
  const int64_t value = node->is_integer() ? node->as_integer()->get() : -1;
  if (value < least || value > most)
    return fail(node, fmt::format("{} must be a whole number from {} to {}", key, least, most));
  field = static_cast<uint32_t>(value);
}

void TomlSections::end_section() {
  if (fields_ == nullptr) return;
  for (const auto& [key, node] : *fields_) {
    if (!is_one_of(keys_, key.str())) {
      fail(&node, fmt::format("unknown key '{}'; the keys of [{}] are {}", key.str(), section_,
                              fmt::join(keys_, ", ")));
    }
  }
}

Status TomlSections::end() {
  for (const auto& [key, node] : table_) {
    if (!is_one_of(sections_, key.str())) {
      fail(&node, fmt::format("unknown section '{}'; the sections of a profile are {}", key.str(),
                              fmt::join(sections_, ", ")));
    }
  }
  return status_;
}

const toml::node* TomlSections::find(std::string_view key) {
  keys_.push_back(key);
  if (fields_ == nullptr) return nullptr;
  const toml::node* node = fields_->get(key);
  if (node == nullptr) fail(fields_, fmt::format("{} is missing", key));
  return node;
}

void TomlSections::fail(const toml::node* node, std::string detail) {
  if (!status_.ok()) return;
  std::string origin = node == nullptr ? file_ : fmt::format("{}:{}", file_, node->source().begin.line);
  status_ = Error{Code::invalid_argument, std::move(origin), std::move(detail)};
}

}  // namespace tierd
