// tier-calibrate: measures the limits of this machine and writes them as a device description.
#include <fmt/format.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

#include "core/base/checksum.h"
#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/statistics.h"
#include "core/base/time.h"
#include "core/base/units.h"
#include "core/store/cache_folder.h"
#include "core/system/memory_limits.h"
#include "tiers/compute/kernels.h"
#include "tiers/compute/memory_bandwidth.h"
#include "tiers/flash/bandwidth.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/command_line/text_file.h"
#include "tools/tier/calibrate/machine.h"
#include "tools/tier/calibrate/scratch_file.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Measures this machine: how fast it reads a disk (by read size and reads in flight, in order and at\n"
    "random, past the page cache), how fast its cores read memory, and how fast they multiply weights of\n"
    "each encoding, one call after the other and after pauses. Keeps the result beside the converted\n"
    "models, where tierd --check finds it, and prints it on one screen. Run it while nothing else runs.\n\n"
    "  tier-calibrate                        a minute; measures the disk of the cache folder\n"
    "  tier-calibrate --quick                a few points, under 20 seconds\n"
    "  tier-calibrate --folder /mnt/nvme     another disk\n"
    "  tier-calibrate -o box.toml            a description for --set run.machine=box.toml\n"
    "  tier-calibrate --file 7b.store/weights.bin   reads that file instead of writing one\n"
    "\n"
    "Exit: 0 done; 1 the disk or the output failed; 2 unusable arguments.\n";

struct Options {
  std::string output;
  std::string file;
  std::string folder;
  std::string size;
  uint32_t threads = 0;
  bool quick = false;
  bool quiet = false;
};

// The measurements: every size at every depth, `rounds` times, each point for `seconds`.
struct Plan {
  std::vector<uint64_t> sizes;
  std::vector<uint32_t> depths;
  int rounds = 0;
  double seconds = 0;
  const char* file_size = nullptr;
};
// The flash agent keeps 128 reads in flight by default, and submits an eighth of them at once.
constexpr uint32_t kAtOnce = 16;
// The kernels multiply weights of 256 MiB, which no cache holds; all other measurements need less.
constexpr uint64_t kMostBytes = uint64_t{264} << 20;

Plan make_plan(bool quick) {
  if (quick) return {{4096, 1 << 14, 1 << 16, 1 << 20, 4 << 20}, {1, 16, 128}, 1, 0.15, "512 MiB"};
  return {{4096, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 4 << 20}, {1, 4, 16, 128}, 3, 0.4, "2 GiB"};
}

void say(const Options& options, const std::string& line) {
  if (!options.quiet) tierd::say(line);
}

void warn_if_in_memory(const std::string& path) {
  constexpr long kTmpfs = 0x01021994;
  struct statfs info {};
  if (::statfs(path.c_str(), &info) == 0 && info.f_type == kTmpfs) {
    tierd::say(path + ": lies in memory (tmpfs): this measures no disk; choose another --folder");
  }
}

// Whole rounds over all points, so that bursts and throttling of the disk affect all alike.
Status measure_flash(const std::string& path, const Plan& plan, const Options& options, Machine& machine) {
  struct Samples {
    std::vector<double> sequential;
    std::vector<double> random;
  };
  constexpr uint64_t kUsualRead = 1 << 16;
  std::vector<double> thread_ns;
  std::vector<Samples> samples(plan.sizes.size() * plan.depths.size());
  uint64_t next_byte = 0;  // where the next sequential run goes on
  for (int round = 0; round < plan.rounds; ++round) {
    Samples* at = samples.data();
    for (const uint64_t bytes : plan.sizes) {
      for (const uint32_t depth : plan.depths) {
        ReadPattern pattern{.read_bytes = bytes, .depth = depth, .seconds = plan.seconds};
        TIERD_ASSIGN(const ReadRate sequential, measure_read(path, pattern, next_byte / bytes));
        next_byte = sequential.first * bytes;
        pattern.random = true;
        pattern.seed = static_cast<uint64_t>(round) + 1;
        TIERD_ASSIGN(const ReadRate random, measure_read(path, pattern));
        at->sequential.push_back(sequential.bytes_per_second);
        at->random.push_back(random.bytes_per_second);
        if (bytes == kUsualRead && depth == kAtOnce) thread_ns.push_back(random.thread_seconds * 1e9);
        ++at;
        machine.device = sequential.device;
        say(options,
            fmt::format("disk, round {} of {}: {:>7} B x {:<2} in order {:>9}/s, at random {:>9}/s",
                        round + 1, plan.rounds, bytes, depth, format_bytes(sequential.bytes_per_second),
                        format_bytes(random.bytes_per_second)));
      }
    }
  }
  const Samples* at = samples.data();
  for (const uint64_t bytes : plan.sizes) {
    for (const uint32_t depth : plan.depths) {
      machine.reads.push_back({.read_bytes = bytes,
                               .depth = depth,
                               .sequential = median(at->sequential),
                               .random = median(at->random)});
      ++at;
    }
  }
  machine.thread_ns = static_cast<uint64_t>(median(thread_ns));
  TIERD_ASSIGN(machine.round, measure_round(path));
  say(options, fmt::format("disk: a read takes {:.3g} us of the thread that asks; {} are told of together",
                           static_cast<double>(machine.thread_ns) * 1e-3, machine.round));
  return {};
}

// Measures with 1, 2, 4 … and all threads.
Status measure_memory(const Plan& plan, const Options& options, Machine& machine) {
  const uint32_t most = options.threads != 0 ? options.threads : machine.cores;
  for (uint32_t threads = 1;; threads = std::min(threads * 2, most)) {
    std::vector<double> rates;
    for (int round = 0; round < plan.rounds; ++round) {
      TIERD_ASSIGN(const double rate, measure_memory_read(threads, plan.seconds));
      rates.push_back(rate);
    }
    machine.memory.push_back({.threads = threads, .bytes_per_second = median(rates)});
    say(options, fmt::format("memory, {} thread{}: {}", threads, threads == 1 ? "" : "s",
                             format_rate(machine.memory.back().bytes_per_second)));
    if (threads == most) return {};
  }
}

// Verifies 64 MiB in pieces of 1 MiB, more than this core's caches hold: a run verifies bytes that a disk has
// just written to memory. The bytes that are copied have landed in a few reused pieces and have just been
// verified.
void measure_checks(const Plan& plan, Machine& machine) {
  constexpr size_t kRead = size_t{1} << 20, kReads = 64, kCopy = size_t{16} << 10;
  std::vector<std::byte> bytes(kRead * kReads, std::byte{7});
  const std::vector<std::byte> landed(kRead, std::byte{7});
  std::vector<double> checks, copies;
  uint64_t sum = 0;
  const auto rate_since = [&](uint64_t begin) {
    return static_cast<double>(bytes.size()) / static_cast<double>(now_ns() - begin) * 1e9;
  };
  for (int round = 0; round < plan.rounds; ++round) {
    uint64_t begin = now_ns();
    for (size_t i = 0; i < kReads; ++i) sum += checksum(std::span(bytes).subspan(i * kRead, kRead));
    checks.push_back(rate_since(begin));
    begin = now_ns();
    for (size_t at = 0; at < bytes.size(); at += kCopy)
      std::memcpy(bytes.data() + at, landed.data() + at % kRead, kCopy);
    copies.push_back(rate_since(begin));
  }
  machine.check_rate = sum != 0 ? median(checks) : 0;
  machine.copy_rate = median(copies);
}

Status measure_compute(const Plan& plan, const Options& options, Machine& machine) {
  machine.kernels = best_kernels().name;
  machine.kernel_threads = options.threads != 0 ? options.threads : machine.cores;
  say(options, fmt::format("kernels {} on {} threads", machine.kernels, machine.kernel_threads));
  TIERD_ASSIGN(machine.rates, measure_kernels(machine.kernel_threads, plan.seconds));
  return {};
}

// Returns the folder whose disk is measured; the folder of the stores is created.
Result<std::string> folder_of(const Options& options) {
  if (!options.folder.empty()) return options.folder;
  if (!options.file.empty()) return std::filesystem::path(options.file).parent_path().string();
  TIERD_ASSIGN(const std::string folder, cache_folder());
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Error{Code::io_error, folder, "cannot create the folder: " + failed.message()};
  return folder;
}

Status calibrate(const Options& options) {
  TIERD_TRY(expect_memory(kMostBytes, "measuring"));
  const Plan plan = make_plan(options.quick);
  Machine machine = describe_machine();
  TIERD_TRY(measure_memory(plan, options, machine));
  measure_checks(plan, machine);
  TIERD_TRY(measure_compute(plan, options, machine));
  std::string path = options.file;
  std::optional<ScratchFile> scratch;
  TIERD_ASSIGN(const std::string folder, folder_of(options));
  machine.folder = std::filesystem::absolute(folder).string();
  warn_if_in_memory(path.empty() ? folder : path);
  if (path.empty()) {
    TIERD_ASSIGN(const uint64_t bytes,
                 parse_bytes(options.size.empty() ? plan.file_size : options.size, "--size"));
    const uint64_t least = plan.sizes.back();
    if (bytes < least) {
      return Error{Code::invalid_argument, "--size",
                   fmt::format("{} B is less than the largest read of {} B", bytes, least)};
    }
    TIERD_ASSIGN(scratch, make_scratch_file(folder, bytes, options.quiet));
    path = scratch->path();
  }
  machine.just_written = scratch.has_value();
  TIERD_ASSIGN(machine.touch, measure_touch(path, static_cast<uint64_t>(now_ns())));
  TIERD_TRY(measure_flash(path, plan, options, machine));
  std::string output = options.output;
  if (output.empty()) {
    TIERD_ASSIGN(output, machine_file());
  }
  TIERD_TRY(write_text_file(output, to_toml(machine)));
  TIERD_TRY(write_output(to_table(machine)));
  say(options, "written to " + output);
  return {};
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("tier-calibrate", kAbout);
  line.option("-o,--output", options.output,
              "The file to write (default: hardware/<host>.toml in the cache folder)")
      .named("FILE");
  const Argument file =
      line.option("--file", options.file, "An existing file to read, at least 4 MiB; none is written then")
          .named("FILE");
  line.option(
          "--folder", options.folder,
          "Where the file to read is written; it has no name and goes by itself (default: the cache folder)")
      .named("DIR")
      .excludes(file);
  line.option("--size", options.size, "Size of that file (default: 2 GiB, with --quick 512 MiB)")
      .named("SIZE")
      .excludes(file);
  line.option("-t,--threads", options.threads, "Most threads for memory and kernels (default: all cores)")
      .named("N")
      .between(1, 1024);
  line.flag("--quick", options.quick, "Fewer points, once each");
  line.flag("-q,--quiet", options.quiet, "No progress on stderr");
  if (const auto status = line.parse(argc, argv)) return *status;
  const Status status = calibrate(options);
  if (status.ok()) return 0;
  tierd::say("tier-calibrate: " + status.error().line());
  return status.error().code == Code::invalid_argument ? kBadInput : kFailed;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
