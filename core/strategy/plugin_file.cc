#include "core/strategy/plugin_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

#include "core/strategy/parameters.h"
#include "core/strategy/shared_object.h"

namespace tierd {
namespace {

constexpr const char* kSymbol = "tierd_plugin_entry";
// The sizes of structs in version 2.0: up to the last field of that version. Later fields are read only if
// they lie within the plugin's size.
#define TIERD_END_OF(type, field) (offsetof(type, field) + sizeof(type::field))
constexpr uint32_t kLeastDescriptor = TIERD_END_OF(tierd_plugin, extension);
constexpr uint32_t kLeastParam = TIERD_END_OF(tierd_param, help);
constexpr uint32_t kLeastPredictor = TIERD_END_OF(tierd_predictor_1, reads_x);
constexpr uint32_t kLeastHeat = TIERD_END_OF(tierd_heat_1, heat);
constexpr uint32_t kLeastQuantizer = TIERD_END_OF(tierd_levels_1, choose);
constexpr uint32_t kLeastCache = TIERD_END_OF(tierd_cache_1, end_sequence);
constexpr uint32_t kLeastBalancer = TIERD_END_OF(tierd_balancer_1, assign);
constexpr uint32_t kLeastCodec = TIERD_END_OF(tierd_codec_1, expand);
#undef TIERD_END_OF

// A function that a table must have, by its offset.
struct Required {
  size_t offset;
  const char* name;
};

template <class Table>
Status read(const tierd_plugin& plugin, const std::string& origin, const char* id, uint32_t least,
            std::span<const Required> required, Table& table) {
  const void* found = nullptr;
  try {
    found = plugin.extension(id);
  } catch (...) {
    return file_fault(origin, fmt::format("extension('{}') threw an exception", id));
  }
  if (found == nullptr) return file_fault(origin, fmt::format("does not offer {}", id));
  uint32_t size = 0;
  std::memcpy(&size, found, sizeof size);
  if (size < least) {
    return file_fault(origin,
                      fmt::format("its table {} has {} B, at least {} B were expected", id, size, least));
  }
  table = {};
  std::memcpy(&table, found, std::min<size_t>(size, sizeof table));
  table.size = sizeof table;
  for (const Required& one : required) {
    void (*function)() = nullptr;
    std::memcpy(&function, reinterpret_cast<const std::byte*>(&table) + one.offset, sizeof function);
    if (function == nullptr) {
      return file_fault(origin, fmt::format("its table {} has no function '{}'", id, one.name));
    }
  }
  return {};
}

}  // namespace

Result<const tierd_plugin*> load_plugin(const std::string& path, std::string_view kind,
                                        std::string_view name) {
  TIERD_ASSIGN(const void* symbol, load_symbol(path, {kSymbol, "a plugin", "TIERD_PLUGIN"}));
  const auto* plugin = static_cast<const tierd_plugin*>(symbol);
  TIERD_TRY(check_plugin(*plugin, path, kind, name));
  return plugin;
}

Status check_plugin(const tierd_plugin& plugin, const std::string& origin, std::string_view kind,
                    std::string_view name) {
  if (plugin.abi_major != TIERD_ABI_MAJOR) {
    return file_fault(
        origin,
        fmt::format("was built for version {}.{} of the plugin interface, expected {}.{}; build it again",
                    plugin.abi_major, plugin.abi_minor, TIERD_ABI_MAJOR, TIERD_ABI_MINOR));
  }
  if (plugin.size < kLeastDescriptor) {
    return file_fault(origin, fmt::format("its descriptor has {} B, at least {} B were expected", plugin.size,
                                          kLeastDescriptor));
  }
  const auto text = [&](const char* field, const char* value) -> Status {
    if (value == nullptr) return file_fault(origin, fmt::format("its descriptor has no {}", field));
    return {};
  };
  TIERD_TRY(text("kind", plugin.kind));
  TIERD_TRY(text("name", plugin.name));
  TIERD_TRY(text("version", plugin.version));
  TIERD_TRY(text("summary", plugin.summary));
  if (plugin.create == nullptr) return file_fault(origin, "its descriptor has no function 'create'");
  if (plugin.destroy == nullptr) return file_fault(origin, "its descriptor has no function 'destroy'");
  if (plugin.extension == nullptr) return file_fault(origin, "its descriptor has no function 'extension'");
  if (kind != plugin.kind || name != plugin.name) {
    return file_fault(origin, fmt::format("its name is {} '{}', expected {} '{}' by its file name",
                                          plugin.kind, plugin.name, kind, name));
  }
  if (plugin.n_params != 0) {
    if (plugin.params == nullptr) return file_fault(origin, "declares parameters, but has no list of them");
    if (plugin.param_size < kLeastParam) {
      return file_fault(origin,
                        fmt::format("its parameter declarations have {} B each, at least {} B were expected",
                                    plugin.param_size, kLeastParam));
    }
  }
  return check_declarations(plugin, origin);
}

Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_predictor_1& table) {
  static constexpr Required kRequired[] = {{offsetof(tierd_predictor_1, caps), "caps"},
                                           {offsetof(tierd_predictor_1, predict), "predict"}};
  return read(plugin, origin, TIERD_PREDICTOR_1, kLeastPredictor, kRequired, table);
}

Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_heat_1& table) {
  static constexpr Required kRequired[] = {{offsetof(tierd_heat_1, fired), "fired"},
                                           {offsetof(tierd_heat_1, heat), "heat"}};
  return read(plugin, origin, TIERD_HEAT_1, kLeastHeat, kRequired, table);
}

bool offers_heat(const tierd_plugin& plugin) {
  try {
    return plugin.extension(TIERD_HEAT_1) != nullptr;
  } catch (...) {
    return false;  // the error is reported when the extension is used
  }
}

Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_levels_1& table) {
  static constexpr Required kRequired[] = {{offsetof(tierd_levels_1, choose), "choose"}};
  return read(plugin, origin, TIERD_LEVELS_1, kLeastQuantizer, kRequired, table);
}

Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_cache_1& table) {
  static constexpr Required kRequired[] = {{offsetof(tierd_cache_1, share), "share"},
                                           {offsetof(tierd_cache_1, admit), "admit"}};
  return read(plugin, origin, TIERD_CACHE_1, kLeastCache, kRequired, table);
}

Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_balancer_1& table) {
  static constexpr Required kRequired[] = {{offsetof(tierd_balancer_1, place), "place"},
                                           {offsetof(tierd_balancer_1, assign), "assign"}};
  return read(plugin, origin, TIERD_BALANCER_1, kLeastBalancer, kRequired, table);
}

Status read_table(const tierd_plugin& plugin, const std::string& origin, tierd_codec_1& table) {
  static constexpr Required kRequired[] = {{offsetof(tierd_codec_1, bound), "bound"},
                                           {offsetof(tierd_codec_1, compress), "compress"},
                                           {offsetof(tierd_codec_1, expand), "expand"}};
  return read(plugin, origin, TIERD_CODEC_1, kLeastCodec, kRequired, table);
}

}  // namespace tierd
