#include "core/model/shape_file.h"

#include <cstdlib>
#include <limits>

#include "core/base/named_toml.h"
#include "core/base/toml_fields.h"
#include "core/model/config_fields.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

// Reads one field a call; keeps the fields that the file does not have.
struct ShapeReader {
  TomlFields& fields;

  template <class T>
  void operator()(std::string_view key, T& field) {
    if (fields.has(key)) read(key, field);
  }
  template <class T>
  void operator()(std::string_view key, T& field, const T&) {
    (*this)(key, field);
  }

 private:
  void read(std::string_view key, std::string& field) { field = fields.text(key); }
  void read(std::string_view key, bool& field) { field = fields.flag(key); }
  void read(std::string_view key, uint32_t& field) { field = fields.whole(key, 0, UINT32_MAX); }
  void read(std::string_view key, float& field) {
    field = static_cast<float>(fields.number(key, -kLargest, kLargest));
  }
  void read(std::string_view key, std::vector<float>& field) {
    field.clear();
    for (const double value : fields.numbers(key, -kLargest, kLargest))
      field.push_back(static_cast<float>(value));
  }
  void read(std::string_view key, std::vector<uint32_t>& field) {
    field.clear();
    for (const double value : fields.numbers(key, 0, UINT32_MAX))
      field.push_back(static_cast<uint32_t>(value));
  }
  template <NamedEnum E>
  void read(std::string_view key, E& field) {
    field = fields.one_of<E>(key);
  }

  static constexpr double kLargest = std::numeric_limits<float>::max();
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
  TomlFields fields(file.table, file.path.string());
  visit_fields(config, ShapeReader{fields});
  fields.end();
  for (const std::string_view key :
       {"architecture", "n_layers", "d_model", "n_heads", "d_ff", "vocab_size", "context_length"}) {
    if (!fields.has(key)) fields.fail(key, "is missing");
  }
  TIERD_TRY(fields.status());
  if (!fields.has("n_kv_heads")) config.n_kv_heads = config.n_heads;
  if (!fields.has("head_dim") && config.n_heads != 0) config.head_dim = config.d_model / config.n_heads;
  TIERD_TRY(validate(config, file.path.string()));
  return config;
}

}  // namespace tierd
