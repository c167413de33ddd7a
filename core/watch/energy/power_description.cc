#include "core/watch/energy/power_description.h"

#include <string_view>

#include "core/base/toml_fields.h"
#include "core/time/machine_file.h"

namespace tierd {
namespace {

constexpr double kMostWatts = 1e6;
constexpr double kMostGramsPerKwh = 1e5;
constexpr double kMostKilograms = 1e6;
constexpr double kLeastYears = 0.01;
constexpr double kMostYears = 1000;
constexpr uint32_t kMostCores = 65536;

// Returns the device that a table describes; `watts` and `kilograms`: its keys for power and mass.
DevicePower read_device(TomlFields& table, std::string_view watts = "watts",
                        std::string_view kilograms = "embodied_kg") {
  DevicePower power{.watts = table.number(watts, 0, kMostWatts)};
  const bool weighs = table.has(kilograms), lives = table.has("life_years");
  if (!weighs && !lives) return power;
  power.embodied_kg = table.number(kilograms, 0, kMostKilograms);
  power.life_years = table.number("life_years", kLeastYears, kMostYears);
  return power;
}

Result<PowerDescription> read_table(const NamedToml& file) {
  const std::string path = file.path.string();
  TomlFields whole(file.table, path);
  if (!whole.has("energy"))
    return Error{Code::not_found, path, "has no table [energy], which says what devices draw"};
  TomlFields energy = whole.table("energy");
  PowerDescription power;
  power.path = path;
  power.grams_per_kwh = energy.number("grams_per_kwh", 0, kMostGramsPerKwh);
  TomlFields processor = energy.table("processor");
  power.processor = read_device(processor);
  power.processor_cores = processor.whole("cores", 1, kMostCores);
  processor.end();
  if (energy.has("gpu")) {
    TomlFields gpu = energy.table("gpu");
    power.gpu = read_device(gpu);
    gpu.end();
  }
  TomlFields dram = energy.table("dram");
  power.dram = read_device(dram, "watts_per_gb", "embodied_kg_per_gb");
  dram.end();
  TomlFields flash = energy.table("flash");
  power.flash = read_device(flash);
  flash.end();
  energy.end();
  TIERD_TRY(whole.status());
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
