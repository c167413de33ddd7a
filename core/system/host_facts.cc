#include "core/system/host_facts.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>

#include "core/system/cores.h"

namespace tierd {
namespace {

std::string read_cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

HostFacts read_host_facts() {
  HostFacts facts;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) facts.name = host.data();
  if (facts.name.empty()) facts.name = "unnamed";
  facts.cpu = read_cpu_name();
  facts.cores = own_cores().cores;
  facts.memory_bytes =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return facts;
}

std::string date_and_time() {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
}

}  // namespace tierd
