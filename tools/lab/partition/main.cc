// tier-partition: chooses the neurons that the GPU holds from the start, and the home DIMM of each neuron.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/base/standard_streams.h"
#include "core/base/time.h"
#include "core/base/units.h"
#include "core/report/figure_json.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/lab/partition/methods.h"
#include "tools/lab/partition/partition_file.h"
#include "tools/lab/partition/report.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Divides the neurons of a model between one GPU and DIMMs that compute, by how often each is active "
    "(Hermes, "
    "offline\n"
    "neuron mapping). All neurons lie on the DIMMs; the GPU has copies of the hot ones, and computes those. "
    "A "
    "site takes\n"
    "as long as the slowest: the GPU with two synchronizations, or the busiest DIMM.\n"
    "\n"
    "  tier-profile -m model/ text.txt -o frequencies.safetensors --frequencies\n"
    "  tier-partition frequencies.safetensors -o partition.safetensors --gpu-bytes 9GB\n"
    "\n"
    "What is not given of the machine is the paper's: an RTX 4090 and eight DIMMs. The gap is that of the "
    "partition as it\n"
    "is written, neuron by neuron, to a bound that no partition is below.\n"
    "\n"
    "Exit status: 0; 1 if a disk, an output or the solver failed; 2 if something given cannot be used, with "
    "one "
    "line on\n"
    "standard error that says why.\n";

struct Options {
  std::string frequencies;
  std::string output;
  std::string gpu_bytes;
  std::string gpu_rate = "936GB/s";
  uint32_t dimms = 8;
  std::string dimm_bytes = "32GB";
  std::string dimm_rate = "102.4GB/s";
  double sync_ns = 0;
  std::string method = "ilp";
  PartitionOptions partition;
  bool json = false;
  bool quiet = false;
};

// Parses a size, with or without "/s".
Result<double> parse_rate(std::string_view text, std::string_view origin) {
  constexpr std::string_view kPerSecond = "/s";
  if (text.ends_with(kPerSecond)) text.remove_suffix(kPerSecond.size());
  TIERD_ASSIGN(const uint64_t bytes, parse_bytes(text, origin));
  return static_cast<double>(bytes);
}

Result<PartitionMachine> machine_of(const Options& options) {
  PartitionMachine machine;
  TIERD_ASSIGN(machine.gpu_bytes, parse_bytes(options.gpu_bytes, "--gpu-bytes"));
  TIERD_ASSIGN(machine.gpu_rate, parse_rate(options.gpu_rate, "--gpu-bandwidth"));
  machine.dimms = options.dimms;
  TIERD_ASSIGN(machine.dimm_bytes, parse_bytes(options.dimm_bytes, "--dimm-bytes"));
  TIERD_ASSIGN(machine.dimm_rate, parse_rate(options.dimm_rate, "--dimm-bandwidth"));
  machine.sync_seconds = options.sync_ns * 1e-9;
  return machine;
}

Status partition(Options options) {
  for (const PartitionMethod method : {PartitionMethod::greedy, PartitionMethod::random}) {
    if (options.method == name(method)) options.partition.method = method;
  }
  PartitionProblem problem;
  TIERD_ASSIGN(problem.machine, machine_of(options));
  TIERD_ASSIGN(Frequencies frequencies, read_frequencies(options.frequencies));
  problem.sites = frequencies.sites;
  // Shows the elapsed seconds of the solver's limit, since the solver reports no progress.
  Progress progress("solving", static_cast<uint64_t>(std::ceil(options.partition.limit.seconds)),
                    options.quiet, "s");
  const uint64_t begin_ns = now_ns();
  uint64_t told = 0;
  TIERD_ASSIGN(const PartitionResult result, make_partition(problem, options.partition, [&] {
                 const uint64_t seconds = (now_ns() - begin_ns) / 1'000'000'000;
                 progress.advance(seconds - told);
                 told = seconds;
               }));
  if (progress.shown()) progress.finish();
  TIERD_TRY(write_partition(options.output, frequencies, result.partition));
  const PartitionFigures report = partition_figures(problem, options.partition.method, result);
  return write_output(options.json ? figures_json(report).dump(2) + "\n" : partition_text(report));
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("tier-partition", kAbout);
  line.option("frequencies", options.frequencies, "as tier-profile --frequencies writes them")
      .required()
      .named("FILE");
  line.option("-o,--output", options.output, "the file to write").required().named("FILE");
  line.option("--gpu-bytes", options.gpu_bytes, "of the GPU's memory, for hot neurons")
      .required()
      .named("SIZE");
  line.option("--gpu-bandwidth", options.gpu_rate, "of the GPU's memory").named("RATE").shows_default();
  line.option("--dimms", options.dimms, "how many there are")
      .between(1, static_cast<int>(kMostDimms))
      .named("N")
      .shows_default();
  line.option("--dimm-bytes", options.dimm_bytes, "of each DIMM; all neurons count, hot ones as well")
      .named("SIZE")
      .shows_default();
  line.option("--dimm-bandwidth", options.dimm_rate, "of each DIMM, seen from its own cores")
      .named("RATE")
      .shows_default();
  line.option("--sync", options.sync_ns, "one way between DIMMs and GPU; a site takes two")
      .between(0.0, 1e9)
      .named("NANOSECONDS")
      .shows_default();
  line.option("--method", options.method, "ilp, greedy or random; ilp tells of the others, too")
      .one_of({"ilp", "greedy", "random"})
      .named("NAME")
      .shows_default();
  line.option("--seconds", options.partition.limit.seconds, "that the solver may take")
      .between(0.1, 1e6)
      .named("N")
      .shows_default();
  line.option("-s,--seed", options.partition.seed, "of random").named("N").shows_default();
  line.flag("--json", options.json, "print JSON");
  line.flag("-q,--quiet", options.quiet, "no progress");
  if (const auto status = line.parse(argc, argv)) return *status;
  const Status done = partition(std::move(options));
  if (done.ok()) return 0;
  say("tier-partition: " + done.error().line());
  return exit_code(done.error());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
