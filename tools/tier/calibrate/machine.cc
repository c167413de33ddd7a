#include "tools/tier/calibrate/machine.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/units.h"
#include "core/system/host_facts.h"

namespace tierd {
namespace {

std::string quoted(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

std::string size_name(uint64_t bytes) {
  return bytes < (1 << 20) ? fmt::format("{} KiB", bytes >> 10) : fmt::format("{} MiB", bytes >> 20);
}

const ReadPoint& find(const Machine& machine, uint64_t read_bytes, uint32_t depth) {
  return *std::ranges::find_if(machine.reads, [&](const ReadPoint& point) {
    return point.read_bytes == read_bytes && point.depth == depth;
  });
}

// Rows: read sizes; columns: reads in flight, sequential on the left, random on the right.
std::string read_table(const Machine& machine) {
  std::set<uint64_t> sizes;
  std::set<uint32_t> depths;
  for (const ReadPoint& point : machine.reads) {
    sizes.insert(point.read_bytes);
    depths.insert(point.depth);
  }
  const size_t width = 8 * depths.size();
  std::string text = fmt::format("{:<8}{:>{}}{:>{}}\n", "GB/s", "in order", width, "at random", width);
  std::string flight;
  for (const uint32_t depth : depths) flight += fmt::format("{:>8}", fmt::format("x {}", depth));
  text += fmt::format("{:<8}{}{}\n", "", flight, flight);
  for (const uint64_t size : sizes) {
    text += fmt::format("{:<8}", size_name(size));
    for (double ReadPoint::*rate : {&ReadPoint::sequential, &ReadPoint::random}) {
      for (const uint32_t depth : depths)
        text += fmt::format("{:>8.2f}", find(machine, size, depth).*rate * 1e-9);
    }
    text += "\n";
  }
  return text;
}

std::string touch_line(const Machine& machine) {
  const auto pass = [](const TouchLatency::Pass& of) {
    return fmt::format("{:.0f} us (mean {:.0f})", of.median * 1e6, of.mean * 1e6);
  };
  return fmt::format(
      "one read of {} alone: {} for the first time, {} again{}", size_name(kTouchBytes),
      pass(machine.touch.first), pass(machine.touch.again),
      machine.just_written ? "; the file was just written; measure an older one with --file FILE" : "");
}

std::string kernel_table(const Machine& machine) {
  std::string text = fmt::format(
      "{} on {} threads; one token, GB/s, at once and after a wait; many tokens, G multiply-adds/s\n"
      "{:15}{:>16}{:>16}{:>10}\n",
      machine.kernels, machine.kernel_threads, "", "rows", "columns", "many");
  for (const KernelRate& point : machine.rates) {
    text +=
        fmt::format("  {:<5} x {:<5}{:>8.1f}{:>8.1f}", name(point.encoding),
                    point.int8_activations ? "int8" : "f32", point.gemv * 1e-9, point.gemv_after_wait * 1e-9);
    text += point.columns == 0
                ? fmt::format("{:16}", "")
                : fmt::format("{:>8.1f}{:>8.1f}", point.columns * 1e-9, point.columns_after_wait * 1e-9);
    text += fmt::format("{:>10.1f}\n", point.gemm * 1e-9);
  }
  return text;
}

}  // namespace

Machine describe_machine() {
  const HostFacts facts = read_host_facts();
  Machine machine;
  machine.host = facts.name;
  machine.cpu = facts.cpu;
  machine.cores = facts.cores;
  machine.memory_bytes = facts.memory_bytes;
  machine.measured = date_and_time();
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
  text += read_table(machine);
  const ReadPoint& best = fastest(machine);
  const ReadPoint& lean = leanest(machine);
  text += fmt::format("flash through {}: {} at best ({} x {}); {} x {} come within 5 % of it\n",
                      machine.device, format_rate(best.sequential), size_name(best.read_bytes), best.depth,
                      size_name(lean.read_bytes), lean.depth);
  if (machine.touch.reads != 0) text += touch_line(machine) + "\n";
  text += "memory reads";
  for (const MemoryPoint& point : machine.memory) {
    text += fmt::format("{} {} on {} thread{}", &point == machine.memory.data() ? ":" : ",",
                        format_rate(point.bytes_per_second), point.threads, point.threads == 1 ? "" : "s");
  }
  return text + "\n" + kernel_table(machine);
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
  text +=
      fmt::format("\n[flash]\ndevice = {}\nfolder = {}\n", quoted(machine.device), quoted(machine.folder));
  text += fmt::format("latency_ns = {:.0f}  # of one random read of {} B alone\n", latency_ns,
                      smallest->read_bytes);
  if (machine.touch.reads != 0) text += "# " + touch_line(machine) + "\n";
  text += fmt::format("bytes_per_second = {:.0f}  # sequential, at best\n", fastest(machine).sequential);
  text += fmt::format(
      "read_bytes = {}  # with this depth, the fewest bytes in flight within 5 % of it\ndepth = {}\n",
      leanest(machine).read_bytes, leanest(machine).depth);
  text += fmt::format("check_bytes_per_second = {:.0f}  # of one thread, checksums of what was read\n",
                      machine.check_rate);
  text += fmt::format("copy_bytes_per_second = {:.0f}  # of one thread, to where it belongs\n",
                      machine.copy_rate);
  text += fmt::format("thread_ns = {}  # of the thread that asks, for each read\n", machine.thread_ns);
  text += fmt::format("round = {}  # reads that the disk tells of together\n", machine.round);
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
  text += fmt::format("\n[compute]\nkernels = {}\nthreads = {}\n", quoted(machine.kernels),
                      machine.kernel_threads);
  for (const KernelRate& point : machine.rates) {
    text += fmt::format(
        "\n[[compute.rates]]\nencoding = \"{}\"\nactivations = \"{}\"\ngemv_bytes_per_second = {:.0f}\n"
        "gemm_multiply_adds_per_second = {:.0f}\n",
        name(point.encoding), point.int8_activations ? "int8" : "f32", point.gemv, point.gemm);
    for (const auto& [key, rate] :
         {std::pair("columns", point.columns), std::pair("gemv_after_wait", point.gemv_after_wait),
          std::pair("columns_after_wait", point.columns_after_wait)})
      if (rate != 0) text += fmt::format("{}_bytes_per_second = {:.0f}\n", key, rate);
  }
  return text;
}

}  // namespace tierd
