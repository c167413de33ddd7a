#include "core/watch/energy/rapl.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace tierd {
namespace {

namespace fs = std::filesystem;

// "intel-rapl-mmio:0" repeats the counters of a package.
constexpr std::string_view kZonePrefix = "intel-rapl:";
constexpr double kJoulesOfMicro = 1e-6;

Result<std::string> read_line(const fs::path& path) {
  errno = 0;
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) {
    return Error{Code::io_error, path.string(),
                 errno != 0 ? fmt::format("cannot be read: {}", std::strerror(errno)) : "is empty"};
  }
  return line;
}

Result<uint64_t> read_number(const fs::path& path) {
  TIERD_ASSIGN(const std::string line, read_line(path));
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc() || end != line.data() + line.size())
    return Error{Code::corrupt, path.string(), fmt::format("'{}' is no number", line.substr(0, 40))};
  return number;
}

class Rapl final : public EnergyMeter {
 public:
  Status add(const fs::path& zone) {
    Counter counter{.file = zone / "energy_uj"};
    TIERD_ASSIGN(counter.most, read_number(zone / "max_energy_range_uj"));
    TIERD_ASSIGN(counter.last, read_number(counter.file));
    counters_.push_back(std::move(counter));
    return {};
  }
  bool empty() const { return counters_.empty(); }

  const char* name() const override { return "RAPL"; }
  std::optional<double> joules() override {
    for (Counter& counter : counters_) {
      const auto now = read_number(counter.file);
      if (!now.ok()) return std::nullopt;
      const uint64_t most = std::max(counter.most, counter.last);
      counted_uj_ += *now >= counter.last ? *now - counter.last : most - counter.last + *now;
      counter.last = *now;
    }
    return static_cast<double>(counted_uj_) * kJoulesOfMicro;
  }

 private:
  struct Counter {
    fs::path file;
    uint64_t most = 0;  // µJ, after which it wraps to 0
    uint64_t last = 0;
  };
  std::vector<Counter> counters_;
  uint64_t counted_uj_ = 0;
};

// Returns whether a zone's name is of a domain: "package-0" is of "package", "dram" of "dram".
bool is_of(std::string_view name, std::string_view domain) {
  return name.starts_with(domain) && (name.size() == domain.size() || name[domain.size()] == '-');
}

}  // namespace

FoundMeter rapl_meter(const std::string& powercap, std::string_view domain) {
  std::vector<fs::path> zones;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(powercap, none)) {
    if (entry.path().filename().string().starts_with(kZonePrefix)) zones.push_back(entry.path());
  }
  std::ranges::sort(zones);
  auto meter = std::make_unique<Rapl>();
  for (const fs::path& zone : zones) {
    TIERD_ASSIGN(const std::string name, read_line(zone / "name"));
    if (is_of(name, domain)) TIERD_TRY(meter->add(zone));
  }
  if (meter->empty()) return Error{Code::not_found, powercap, fmt::format("RAPL counts no {} here", domain)};
  return std::unique_ptr<EnergyMeter>(std::move(meter));
}

}  // namespace tierd
