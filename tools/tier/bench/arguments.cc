#include "tools/tier/bench/arguments.h"

#include <fmt/format.h>

#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/command_line/moved.h"

namespace tierd {
namespace {

constexpr const char* kDescription =
    "tier-bench measures prefill and decode of a model: rates, where a token's time and bytes go, and the "
    "limit\n"
    "that the machine's bandwidths set, measured in the same run.\n"
    "\n"
    "  tier-bench --config configs/hybrid.toml -m 7b.store -p 128 -n 64 -r 3 -c 128 -t 2\n"
    "  tier-bench -m 7b.store -n 128 -t 2 --block-seconds 30 --warmup-seconds 10 \\\n"
    "    --peer 'llama-bench -m 7b.gguf -p 0 -n 128 -t 2 -o jsonl' --peer-rate '\"avg_ts\": ([0-9.]+)'\n"
    "\n"
    "Tokens are random, or those that the model itself gives after a text (-f): who is active follows from "
    "them.\n"
    "tier sweep measures at several values of a key, and draws them.\n"
    "The table goes to stdout, progress to stderr. Exit: 0 done; 1 a measurement failed;\n"
    "2 a bad argument, model or configuration.";

struct PeerFlags {
  std::string command, rate;
  std::optional<uint32_t> rounds;
  bool keep = false;
};

Status complete(const PeerFlags& peer, MeasurementArguments& measurement, Arguments& arguments) {
  // With a peer, one rate is compared, so only requested tests are measured.
  const bool alone = peer.command.empty();
  TIERD_TRY(measurement.complete(alone));
  if (peer.rounds) arguments.rounds = *peer.rounds;
  if (alone) return {};
  if (arguments.tests.size() != 1)
    return Error{Code::invalid_argument, "--peer", "one rate is compared: give -p or -n, not both"};
  TIERD_ASSIGN(RatePattern rate, RatePattern::compile(peer.rate));
  arguments.peer = PeerArguments{peer.command, std::move(rate), peer.keep};
  return {};
}

}  // namespace

Parsed parse_arguments(int argc, char** argv) {
  Parsed parsed;
  const std::vector<std::string> words = words_of(argc, argv);
  if (const std::string_view sweeps = find_option(words, {"--sweep", "--plot"}); !sweeps.empty()) {
    std::vector<std::string> command = {"tier", "sweep"};
    command.insert(command.end(), words.begin(), words.end());
    parsed.exit_code = refuse_moved("tier-bench", sweeps, command);
    return parsed;
  }
  MeasurementArguments measurement(parsed.arguments);
  PeerFlags flags;
  CommandLine line("tier-bench", kDescription);
  measurement.add_to("tier-bench", line);
  Argument peer =
      line.option("--peer", flags.command, "a shell command to run after each block of ours").named("CMD");
  Argument rate =
      line.option("--peer-rate", flags.rate, "finds the peer's tokens/s in its output, first group")
          .named("REGEX");
  peer.needs(rate).excludes(measurement.repetitions());
  rate.needs(peer);
  line.option("--rounds", flags.rounds,
              fmt::format("times ours and the peer take turns [{}]", kDefaultRounds))
      .named("N")
      .between(1, 1000)
      .needs(peer);
  line.flag("--keep", flags.keep, "keep the model in memory while the peer runs").needs(peer);
  parsed.exit_code = line.parse(words);
  if (parsed.exit_code) return parsed;
  if (const Status status = complete(flags, measurement, parsed.arguments); !status.ok())
    parsed.exit_code = fail(status.error(), kBadInput);
  return parsed;
}

}  // namespace tierd
