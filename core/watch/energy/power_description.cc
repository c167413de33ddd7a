#include "core/watch/energy/power_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include <toml++/toml.h>

#include "core/time/machine_file.h"

namespace tierd {
namespace {

constexpr double kMostWatts = 1e6;
constexpr double kMostGramsPerKwh = 1e5;
constexpr double kMostKilograms = 1e6;
constexpr double kLeastYears = 0.01;
constexpr double kMostYears = 1000;
constexpr uint32_t kMostCores = 65536;

// A table of a description, with the full names of its keys. Keeps the first error.
class PowerTable {
 public:
  PowerTable(std::string path, std::string name, const toml::table& table, Status& status)
      : path_(std::move(path)), name_(std::move(name)), table_(table), status_(status) {}

  void refuse_others_than(std::initializer_list<std::string_view> known) {
    for (const auto& [key, node] : table_) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      fail(key.str(), fmt::format("is no key of a description; known are {}", fmt::join(known, ", ")));
    }
  }
  double number(std::string_view key, double least, double most) {
    const toml::node* const node = table_.get(key);
    const auto value = node != nullptr && node->is_number() ? node->value<double>() : std::nullopt;
    if (value && *value >= least && *value <= most) return *value;
    fail(key, fmt::format("is {}; a number from {} to {} is expected",
                          value             ? fmt::format("{}", *value)
                          : node == nullptr ? "missing"
                                            : "none",
                          least, most));
    return least;
  }
  bool has(std::string_view key) const { return table_.contains(key); }
  // Returns the device that this table describes; `watts`: its key for power.
  DevicePower device(std::string_view watts, std::string_view kilograms) {
    DevicePower power{.watts = number(watts, 0, kMostWatts)};
    if (!has(kilograms) && !has("life_years")) return power;
    power.embodied_kg = number(kilograms, 0, kMostKilograms);
    power.life_years = number("life_years", kLeastYears, kMostYears);
    return power;
  }
  DevicePower device() { return device("watts", "embodied_kg"); }
  PowerTable inner(std::string_view key) {
    static const toml::table kNone;
    const toml::node* const node = table_.get(key);
    if (node == nullptr || !node->is_table())
      fail(key, node == nullptr ? "is missing; a table is expected" : "is no table");
    return {path_, full(key), node != nullptr && node->is_table() ? *node->as_table() : kNone, status_};
  }

 private:
  std::string full(std::string_view key) const { return fmt::format("{}.{}", name_, key); }
  void fail(std::string_view key, const std::string& what) {
    if (status_.ok()) status_ = Error{Code::invalid_argument, path_, fmt::format("'{}' {}", full(key), what)};
  }

  std::string path_, name_;
  const toml::table& table_;
  Status& status_;
};

Result<PowerDescription> read_table(const NamedToml& file) {
  const std::string path = file.path.string();
  const toml::node* const node = file.table.get("energy");
  if (node == nullptr)
    return Error{Code::not_found, path, "has no table [energy], which says what devices draw"};
  if (!node->is_table()) return Error{Code::invalid_argument, path, "'energy' is no table"};
  Status status;
  PowerTable energy(path, "energy", *node->as_table(), status);
  PowerDescription power;
  power.path = path;
  energy.refuse_others_than({"grams_per_kwh", "processor", "gpu", "dram", "flash"});
  power.grams_per_kwh = energy.number("grams_per_kwh", 0, kMostGramsPerKwh);
  PowerTable processor = energy.inner("processor");
  processor.refuse_others_than({"watts", "cores", "embodied_kg", "life_years"});
  power.processor = processor.device();
  power.processor_cores = static_cast<uint32_t>(processor.number("cores", 1, kMostCores));
  PowerTable dram = energy.inner("dram");
  dram.refuse_others_than({"watts_per_gb", "embodied_kg_per_gb", "life_years"});
  power.dram = dram.device("watts_per_gb", "embodied_kg_per_gb");
  PowerTable flash = energy.inner("flash");
  flash.refuse_others_than({"watts", "embodied_kg", "life_years"});
  power.flash = flash.device();
  if (energy.has("gpu")) {
    PowerTable gpu = energy.inner("gpu");
    gpu.refuse_others_than({"watts", "embodied_kg", "life_years"});
    power.gpu = gpu.device();
  }
  TIERD_TRY(status);
  return power;
}

}  // namespace

Result<PowerDescription> read_power(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_machine_file(name));
  return read_table(file);
}

Result<PowerDescription> choose_power(const std::string& energy, const std::string& machine) {
  if (!energy.empty()) return read_power(energy);
  if (!machine.empty()) {
    // Errors of the file are reported by virtual time.
    const auto file = read_machine_file(machine);
    if (file.ok() && file->table.contains("energy")) return read_table(*file);
  }
  return read_power(kDefaultPower);
}

}  // namespace tierd
