#include "tools/tier-bench/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

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
    "Tokens are random. The table goes to stdout, progress to stderr. Exit: 0 done; 1 a measurement failed;\n"
    "2 a bad argument, model or configuration.";

constexpr uint32_t kDefaultPrompt = 512;
constexpr uint32_t kDefaultGenerate = 128;
constexpr uint32_t kDefaultRounds = 5;

struct Raw {
  std::string model, peer, peer_rate;
  std::optional<uint32_t> prompt, generate, repetitions, rounds, context, threads, ubatch;
  std::optional<uint64_t> seed;
  bool keep = false;
};

Status complete(const Raw& raw, Arguments& arguments) {
  TIERD_ASSIGN(arguments.config, load_config(arguments.config_file, arguments.overrides));
  Config& config = arguments.config;
  if (!raw.model.empty()) config.model = raw.model;
  if (raw.threads) config.threads = *raw.threads;
  if (raw.ubatch) config.ubatch = *raw.ubatch;
  if (raw.seed) config.seed = *raw.seed;

  // One rate stands beside the peer's: with a peer, what is not asked for is not measured.
  const bool alone = raw.peer.empty();
  const uint32_t prompt = raw.prompt.value_or(alone ? kDefaultPrompt : 0);
  const uint32_t generate = raw.generate.value_or(alone || prompt == 0 ? kDefaultGenerate : 0);
  if (prompt > 0) arguments.tests.push_back({Workload::Kind::prefill, prompt});
  if (generate > 0) arguments.tests.push_back({Workload::Kind::decode, generate});
  if (arguments.tests.empty()) {
    return Error{Code::invalid_argument, "tier-bench", "-p 0 and -n 0 leave nothing to measure"};
  }
  if (!alone && arguments.tests.size() != 1) {
    return Error{Code::invalid_argument, "--peer", "one rate is compared: give -p or -n, not both"};
  }
  if (raw.context) config.context = *raw.context;
  if (config.context == 0) config.context = std::max(prompt, generate);
  if (prompt > config.context) {
    return Error{Code::invalid_argument, "-p",
                 fmt::format("{} tokens do not fit a context of {} (-c)", prompt, config.context)};
  }
  arguments.rounds = raw.rounds.value_or(raw.repetitions.value_or(kDefaultRounds));
  if (!alone) {
    TIERD_ASSIGN(RatePattern rate, RatePattern::compile(raw.peer_rate));
    arguments.peer = PeerArguments{raw.peer, std::move(rate), raw.keep};
  }
  return {};
}

}  // namespace

Parsed parse_arguments(int argc, char** argv) {
  Parsed parsed;
  Arguments& arguments = parsed.arguments;
  Raw raw;
  CLI::App app{kDescription, "tier-bench"};
  app.get_formatter()->column_width(34);
  app.add_option("--config", arguments.config_file, "configuration, see configs/")->type_name("FILE");
  app.add_option("--set", arguments.overrides, "a key over the configuration's, see tierd --help")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("-m,--model", raw.model, "the model")->type_name("PATH");
  app.add_option("-p,--n-prompt", raw.prompt,
                 fmt::format("tokens of a prompt, 0 is none [{}]", kDefaultPrompt))
      ->type_name("N");
  app.add_option("-n,--n-gen", raw.generate,
                 fmt::format("tokens decoded from an empty context, 0 is none [{}]", kDefaultGenerate))
      ->type_name("N");
  auto* repetitions = app.add_option("-r,--repetitions", raw.repetitions,
                                     fmt::format("blocks of each test [{}]", kDefaultRounds))
                          ->type_name("N")
                          ->check(CLI::Range(1, 1000));
  app.add_option("-c,--ctx-size", raw.context, "positions of the context [what -p and -n need]")
      ->type_name("N");
  app.add_option("-t,--threads", raw.threads, "compute workers, 0 is one a core")->type_name("N");
  app.add_option("--ub,--ubatch-size", raw.ubatch, "most tokens of a prefill chunk")->type_name("N");
  app.add_option("-s,--seed", raw.seed, "of the tokens")->type_name("N");
  app.add_option("--block-seconds", arguments.block_seconds,
                 "repeat the test in a block for at least so long; the context is emptied when full")
      ->type_name("S")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--warmup-seconds", arguments.warmup_seconds, "run so long before the first block")
      ->type_name("S")
      ->check(CLI::Range(0.0, 86400.0));
  auto* peer =
      app.add_option("--peer", raw.peer, "a shell command to run after each block of ours")->type_name("CMD");
  auto* rate =
      app.add_option("--peer-rate", raw.peer_rate, "finds the peer's tokens/s in its output, first group")
          ->type_name("REGEX");
  peer->needs(rate)->excludes(repetitions);
  rate->needs(peer);
  app.add_option("--rounds", raw.rounds,
                 fmt::format("times ours and the peer take turns [{}]", kDefaultRounds))
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->needs(peer);
  app.add_flag("--keep", raw.keep, "keep the model in memory while the peer runs")->needs(peer);
  app.add_flag("--fit", arguments.fit, "raise a budget that is too small to the least that would do");
  app.add_option("-o,--output", arguments.format, "md, json or csv")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Format>{{"md", Format::md}, {"json", Format::json}, {"csv", Format::csv}}));
  app.add_flag("-q,--quiet", arguments.quiet, "no progress");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    parsed.exit_code = app.exit(success);
    return parsed;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "tier-bench: {} (see tier-bench --help)\n", error.what());
    parsed.exit_code = 2;
    return parsed;
  }
  if (const Status status = complete(raw, arguments); !status.ok()) {
    fmt::print(stderr, "{}\n", status.error().line());
    parsed.exit_code = 2;
  }
  return parsed;
}

}  // namespace tierd
