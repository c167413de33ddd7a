#include "core/watch/energy/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <type_traits>

namespace tierd {
namespace {

constexpr const char* kFile = "libnvidia-ml.so.1";
constexpr double kJoulesOfMilli = 1e-3;

class Nvml final : public EnergyMeter {
 public:
  Nvml(const NvmlLibrary& library, void* device) : library_(library), device_(device) {}
  const char* name() const override { return "NVML"; }
  std::optional<double> joules() override {
    unsigned long long millijoules = 0;
    if (library_.total_energy(device_, &millijoules) != 0) return std::nullopt;
    return static_cast<double>(millijoules) * kJoulesOfMilli;
  }

 private:
  const NvmlLibrary library_;
  void* device_;
};

}  // namespace

Result<NvmlLibrary> load_nvml() {
  // The library is never unloaded, because it keeps threads and the driver's files open.
  void* const file = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) return Error{Code::not_found, kFile, "cannot be loaded"};
  NvmlLibrary library;
  bool found = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(file, name));
    found = found && function != nullptr;
  };
  find(library.init, "nvmlInit_v2");
  find(library.device_count, "nvmlDeviceGetCount_v2");
  find(library.device_by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(library.total_energy, "nvmlDeviceGetTotalEnergyConsumption");
  if (!found) return Error{Code::not_found, kFile, "lacks a function that tells of energy"};
  return library;
}

FoundMeter nvml_meter(const NvmlLibrary& library) {
  unsigned count = 0;
  if (library.init() != 0 || library.device_count(&count) != 0 || count == 0)
    return Error{Code::not_found, "NVML", "knows of no GPU"};
  if (count > 1) {
    return Error{Code::unsupported, "NVML",
                 fmt::format("knows of {} GPUs, and not which of them the run has", count)};
  }
  void* device = nullptr;
  unsigned long long millijoules = 0;
  if (library.device_by_index(0, &device) != 0 || library.total_energy(device, &millijoules) != 0)
    return Error{Code::unsupported, "NVML", "this GPU does not count what it draws"};
  return std::unique_ptr<EnergyMeter>(std::make_unique<Nvml>(library, device));
}

}  // namespace tierd
