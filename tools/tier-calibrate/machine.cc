#include "tools/tier-calibrate/machine.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "core/base/units.h"

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

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string size_name(uint64_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

const ReadPoint* find(const Machine& machine, uint64_t read_bytes, uint32_t depth) {
  const auto found = std::ranges::find_if(machine.reads, [&](const ReadPoint& point) {
    return point.read_bytes == read_bytes && point.depth == depth;
  });
  return found == machine.reads.end() ? nullptr : &*found;
}

std::string read_table(const Machine& machine, const char* title, double ReadPoint::*rate) {
  std::set<uint64_t> sizes;
  std::set<uint32_t> depths;
  for (const ReadPoint& point : machine.reads) {
    sizes.insert(point.read_bytes);
    depths.insert(point.depth);
  }
  std::string text = fmt::format("{:<26}", title);
  for (const uint32_t depth : depths) text += fmt::format("{:>10}", fmt::format("depth {}", depth));
  for (const uint64_t size : sizes) {
    text += fmt::format("\n  {:<24}", size_name(size));
    for (const uint32_t depth : depths) {
      const ReadPoint* point = find(machine, size, depth);
      text += point == nullptr ? fmt::format("{:>10}", "") : fmt::format("{:>10.2f}", point->*rate * 1e-9);
    }
  }
  return text + "\n";
}

}  // namespace

Machine describe_machine() {
  Machine machine;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) machine.host = host.data();
  if (machine.host.empty()) machine.host = "unnamed";
  machine.cpu = read_cpu_name();
  machine.cores = std::max(1u, std::thread::hardware_concurrency());
  machine.memory_bytes =
      static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  machine.measured = fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time(nullptr)));
  return machine;
}

const ReadPoint& fastest(const Machine& machine) {
  return *std::ranges::max_element(machine.reads, {}, &ReadPoint::sequential);
}

const ReadPoint& leanest(const Machine& machine) {
  const ReadPoint* best = &fastest(machine);
  const double enough = best->sequential * 0.95;
  for (const ReadPoint& point : machine.reads) {
    const bool less = point.read_bytes * point.depth < best->read_bytes * best->depth;
    if (less && point.sequential >= enough) best = &point;
  }
  return *best;
}

std::string to_table(const Machine& machine) {
  std::string text = fmt::format("{}: {}, {} cores, {} of memory\n", machine.host, machine.cpu, machine.cores,
                                 format_bytes(static_cast<double>(machine.memory_bytes)));
  text += read_table(machine, "sequential reads, GB/s", &ReadPoint::sequential);
  text += read_table(machine, "random reads, GB/s", &ReadPoint::random);
  const ReadPoint& best = fastest(machine);
  const ReadPoint& lean = leanest(machine);
  text += fmt::format("flash through {}: {} at best ({} x {}); {} x {} come within 5 % of it\n",
                      machine.device, format_rate(best.sequential), size_name(best.read_bytes), best.depth,
                      size_name(lean.read_bytes), lean.depth);
  text += "memory reads";
  for (const MemoryPoint& point : machine.memory) {
    text += fmt::format("{} {} on {} thread{}", &point == machine.memory.data() ? ":" : ",",
                        format_rate(point.bytes_per_second), point.threads, point.threads == 1 ? "" : "s");
  }
  return text + "\n";
}

std::string to_toml(const Machine& machine) {
  std::string text =
      "# Measured by tier-calibrate; run it again to renew. Rates are bytes per second.\n\n[machine]\n";
  text +=
      fmt::format("host = {}\ncpu = {}\ncores = {}\nmemory_bytes = {}\nmeasured = {}\n", quoted(machine.host),
                  quoted(machine.cpu), machine.cores, machine.memory_bytes, quoted(machine.measured));

  const auto smallest = std::ranges::min_element(
      machine.reads, {}, [](const ReadPoint& point) { return point.read_bytes * point.depth; });
  const double latency_ns = static_cast<double>(smallest->read_bytes) / smallest->random * 1e9;
  text += fmt::format("\n[flash]\ndevice = {}\n", quoted(machine.device));
  text += fmt::format("latency_ns = {:.0f}  # of one random read of {} B alone\n", latency_ns,
                      smallest->read_bytes);
  text += fmt::format("bytes_per_second = {:.0f}  # sequential, at best\n", fastest(machine).sequential);
  text += fmt::format(
      "read_bytes = {}  # with this depth, the fewest bytes in flight within 5 % of it\ndepth = {}\n",
      leanest(machine).read_bytes, leanest(machine).depth);
  for (const ReadPoint& point : machine.reads) {
    text +=
        fmt::format("\n[[flash.reads]]\nread_bytes = {}\ndepth = {}\nsequential = {:.0f}\nrandom = {:.0f}\n",
                    point.read_bytes, point.depth, point.sequential, point.random);
  }

  const auto widest = std::ranges::max_element(machine.memory, {}, &MemoryPoint::bytes_per_second);
  text += fmt::format("\n[dram]\nbytes_per_second = {:.0f}\n", widest->bytes_per_second);
  for (const MemoryPoint& point : machine.memory) {
    text += fmt::format("\n[[dram.reads]]\nthreads = {}\nbytes_per_second = {:.0f}\n", point.threads,
                        point.bytes_per_second);
  }
  return text;
}

}  // namespace tierd
