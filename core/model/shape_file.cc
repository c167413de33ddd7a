#include "core/model/shape_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/named_toml.h"
#include "core/model/config_fields.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

// Reads the fields that the file has and remembers their names.
class ShapeFields {
 public:
  ShapeFields(const toml::table& table, std::string file) : table_(table), file_(std::move(file)) {}

  template <class T>
  void operator()(std::string_view key, T& field) {
    known_.emplace_back(key);
    const toml::node* node = table_.get(key);
    if (node == nullptr || !status_.ok()) return;
    read(key, *node, field);
  }

  bool has(std::string_view key) const { return table_.contains(key); }
  const Status& status() const { return status_; }
  Error error(const toml::node* node, std::string detail) const {
    if (node == nullptr) return {Code::invalid_argument, file_, std::move(detail)};
    return {Code::invalid_argument, fmt::format("{}:{}", file_, node->source().begin.line),
            std::move(detail)};
  }
  Status check_unknown() const {
    for (const auto& [key, node] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) == known_.end()) {
        return error(&node, fmt::format("unknown key '{}'; the keys of a shape are {}", key.str(),
                                        fmt::join(known_, ", ")));
      }
    }
    return {};
  }

 private:
  void fail(std::string_view key, const toml::node& node, std::string_view expected) {
    status_ = error(&node, fmt::format("{} must be {}", key, expected));
  }
  void read(std::string_view key, const toml::node& node, std::string& field) {
    if (!node.is_string()) return fail(key, node, "a string");
    field = node.as_string()->get();
  }
  void read(std::string_view key, const toml::node& node, bool& field) {
    if (!node.is_boolean()) return fail(key, node, "true or false");
    field = node.as_boolean()->get();
  }
  void read(std::string_view key, const toml::node& node, uint32_t& field) {
    const int64_t value = node.is_integer() ? node.as_integer()->get() : -1;
    if (value < 0 || value > UINT32_MAX) return fail(key, node, "a whole number from 0 to 4294967295");
    field = static_cast<uint32_t>(value);
  }
  void read(std::string_view key, const toml::node& node, float& field) {
    const auto value = node.value<double>();
    if (!node.is_number() || !value || !std::isfinite(static_cast<float>(*value))) {
      return fail(key, node, "a finite number");
    }
    field = static_cast<float>(*value);
  }
  void read(std::string_view key, const toml::node& node, std::vector<float>& field) {
    const toml::array* array = node.as_array();
    if (array == nullptr) return fail(key, node, "an array of numbers");
    field.clear();
    for (const toml::node& element : *array) read(key, element, field.emplace_back());
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void read(std::string_view key, const toml::node& node, Enum& field) {
    const auto found = node.is_string() ? by_name<Enum>(node.as_string()->get()) : std::nullopt;
    if (!found) return fail(key, node, fmt::format("one of {}", fmt::join(names_of(Enum{}), ", ")));
    field = *found;
  }

  const toml::table& table_;
  std::string file_;
  std::vector<std::string> known_;
  Status status_;
};

}  // namespace

fs::path shapes_folder() {
  const char* configs = std::getenv("TIERD_CONFIGS");
  return fs::path(configs != nullptr && *configs != '\0' ? configs : TIERD_CONFIGS_DIR) / "models";
}

std::vector<std::string> known_shapes() {
  return toml_names(shapes_folder());
}

Result<ModelConfig> read_shape(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_named_toml(shapes_folder(), name, "shape"));
  ModelConfig config;
  config.name = file.path.stem().string();
  ShapeFields reader(file.table, file.path.string());
  visit_fields(config, reader);
  TIERD_TRY(reader.status());
  TIERD_TRY(reader.check_unknown());
  for (const std::string_view key :
       {"architecture", "n_layers", "d_model", "n_heads", "d_ff", "vocab_size", "context_length"}) {
    if (!reader.has(key)) return reader.error(nullptr, fmt::format("{} is missing", key));
  }
  if (!reader.has("n_kv_heads")) config.n_kv_heads = config.n_heads;
  if (!reader.has("head_dim") && config.n_heads != 0) config.head_dim = config.d_model / config.n_heads;
  TIERD_TRY(validate(config, file.path.string()));
  return config;
}

}  // namespace tierd
