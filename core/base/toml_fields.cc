#include "core/base/toml_fields.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace tierd {
namespace {

// Returns a value for messages. Lists, tables and other long values are named by their type.
std::string excerpt(const toml::node& node) {
  if (const auto* text = node.as_string()) return fmt::format("'{}'", text->get().substr(0, 48));
  if (const auto number = node.value<double>(); number && node.is_number()) return fmt::format("{}", *number);
  std::ostringstream type;
  type << node.type();
  return "of type " + type.str();
}

}  // namespace

TomlFields::TomlFields(const toml::table& table, std::string file)
    : file_(std::make_shared<File>(File{std::move(file), {}})), table_(&table) {}

TomlFields::TomlFields(const TomlFields& file, const toml::table& table, std::string path)
    : file_(file.file_), table_(&table), path_(std::move(path)) {}

bool TomlFields::has(std::string_view key) {
  return find(key) != nullptr;
}

bool TomlFields::is_text(std::string_view key) {
  const toml::node* const node = find(key);
  return node != nullptr && node->is_string();
}

std::vector<std::string> TomlFields::keys() const {
  std::vector<std::string> all;
  for (const auto& [key, node] : *table_) all.emplace_back(key.str());
  return all;
}

double TomlFields::number(std::string_view key, double least, double most) {
  const toml::node* const node = find(key);
  const auto value = node != nullptr && node->is_number() ? node->value<double>() : std::nullopt;
  if (value && *value >= least && *value <= most) return *value;
  refuse(key, node, fmt::format("a number from {} to {}", least, most));
  return least;
}

uint32_t TomlFields::whole(std::string_view key, uint32_t least, uint32_t most) {
  const toml::node* const node = find(key);
  const auto value = node != nullptr && node->is_number() ? node->value<double>() : std::nullopt;
  if (value && *value >= least && *value <= most && *value == std::floor(*value))
    return static_cast<uint32_t>(*value);
  refuse(key, node, fmt::format("a whole number from {} to {}", least, most));
  return least;
}

bool TomlFields::flag(std::string_view key) {
  const toml::node* const node = find(key);
  if (node == nullptr || !node->is_boolean()) return refuse(key, node, "true or false"), false;
  return node->as_boolean()->get();
}

std::string TomlFields::text(std::string_view key) {
  const toml::node* const node = find(key);
  if (node == nullptr || !node->is_string()) return refuse(key, node, "a string"), "";
  return node->as_string()->get();
}

void TomlFields::read(std::string_view key, double& field, double least, double most) {
  if (has(key)) field = number(key, least, most);
}

void TomlFields::read(std::string_view key, uint32_t& field, uint32_t least, uint32_t most) {
  if (has(key)) field = whole(key, least, most);
}

void TomlFields::read(std::string_view key, std::string& field) {
  if (has(key)) field = text(key);
}

std::vector<double> TomlFields::numbers(std::string_view key, double least, double most) {
  const toml::node* const node = find(key);
  std::vector<double> list;
  bool good = node != nullptr && node->is_array();
  for (size_t i = 0; good && i < node->as_array()->size(); ++i) {
    const toml::node& element = *node->as_array()->get(i);
    list.push_back(element.is_number() ? element.value<double>().value_or(NAN) : NAN);
    good = list.back() >= least && list.back() <= most;
  }
  if (!good) refuse(key, node, fmt::format("a list of numbers from {} to {}", least, most));
  return list;
}

std::vector<std::string> TomlFields::texts(std::string_view key) {
  const toml::node* const node = find(key);
  const toml::array* const array = node != nullptr ? node->as_array() : nullptr;
  std::vector<std::string> list;
  if (array == nullptr || (!array->empty() && !array->is_homogeneous<std::string>()))
    return refuse(key, node, "a list of strings"), list;
  for (const toml::node& element : *array) list.push_back(element.as_string()->get());
  return list;
}

TomlFields TomlFields::table(std::string_view key) {
  static const toml::table kNone;
  const toml::node* const node = find(key);
  const bool is_table = node != nullptr && node->is_table();
  if (!is_table) refuse(key, node, "a table");
  return {*this, is_table ? *node->as_table() : kNone, path_of(key)};
}

std::vector<TomlFields> TomlFields::tables(std::string_view key) {
  std::vector<TomlFields> all;
  const toml::node* const node = find(key);
  if (node == nullptr || !node->is_array_of_tables())
    return refuse(key, node, fmt::format("a list of tables [[{}]]", path_of(key))), all;
  for (const toml::node& each : *node->as_array()) all.emplace_back(*this, *each.as_table(), path_of(key));
  return all;
}

void TomlFields::fail(std::string_view key, std::string_view detail) {
  if (!file_->status.ok()) return;
  const toml::node* const node = table_->get(key);
  const toml::source_region& at =
      (node != nullptr ? *node : static_cast<const toml::node&>(*table_)).source();
  // Values that are copied from a base have no line.
  std::string origin = at.begin.line == 0 ? file_->name : fmt::format("{}:{}", file_->name, at.begin.line);
  file_->status = Error{Code::invalid_argument, std::move(origin),
                        key.empty() ? std::string(detail) : fmt::format("'{}' {}", path_of(key), detail)};
}

void TomlFields::end() {
  for (const auto& [key, node] : *table_) {
    if (std::ranges::find(known_, key.str()) == known_.end())
      fail(key.str(), fmt::format("is unknown; known are {}", fmt::join(known_, ", ")));
  }
}

std::string TomlFields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

const toml::node* TomlFields::find(std::string_view key) {
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  return table_->get(key);
}

void TomlFields::refuse(std::string_view key, const toml::node* found, std::string_view expected) {
  fail(key, fmt::format("is {}; {} is expected", found == nullptr ? "missing" : excerpt(*found), expected));
}

}  // namespace tierd
