#include "tools/tier/bench/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/base/file.h"
#include "tools/command_line/command_line.h"

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
    "  tier-bench --config configs/llm-in-a-flash.toml --set predictor.tensors=opt.predictor.safetensors \\\n"
    "    -m opt.store -f opt.prompt.txt -n 64 -r 3 --sweep cache.k=1,2,3,4,5,6 --plot window.svg\n"
    "\n"
    "Tokens are random, or those that the model itself gives after a text (-f): who is active follows from "
    "them.\n"
    "The table goes to stdout, progress to stderr. Exit: 0 done; 1 a measurement failed;\n"
    "2 a bad argument, model or configuration.";

constexpr uint32_t kDefaultPrompt = 512;
constexpr uint32_t kDefaultGenerate = 128;
constexpr uint32_t kDefaultRounds = 5;

struct Raw {
  std::string model, text_file, peer, peer_rate, plot;
  std::vector<std::string> sweep;
  std::string format = "md";
  std::optional<uint32_t> prompt, generate, repetitions, rounds, context, threads, ubatch;
  std::optional<uint64_t> seed;
  bool keep = false;
};

void apply(const Raw& raw, Config& config) {
  if (!raw.model.empty()) config.model = raw.model;
  if (raw.threads) config.threads = *raw.threads;
  if (raw.context) config.context = *raw.context;
  if (raw.ubatch) config.ubatch = *raw.ubatch;
  if (raw.seed) config.seed = *raw.seed;
}

Status complete_sweep(const Raw& raw, Arguments& arguments) {
  if (raw.sweep.empty()) return {};
  TIERD_ASSIGN(arguments.sweep, make_sweep(raw.sweep, arguments.config_file, arguments.overrides));
  // A flag that stands for a swept key would override every point.
  const std::tuple<const char*, const char*, bool> flags[] = {{"model.path", "-m", !raw.model.empty()},
                                                              {"run.threads", "-t", raw.threads.has_value()},
                                                              {"run.context", "-c", raw.context.has_value()},
                                                              {"run.ubatch", "--ub", raw.ubatch.has_value()},
                                                              {"run.seed", "-s", raw.seed.has_value()}};
  for (const SweepAxis& axis : arguments.sweep->axes) {
    for (const auto& [key, flag, given] : flags) {
      if (axis.key == key && given) {
        return Error{Code::invalid_argument, "--sweep",
                     fmt::format("'{}' has a value by {} as well", key, flag)};
      }
    }
  }
  if (!raw.plot.empty()) {
    TIERD_ASSIGN(arguments.plot, PlotFile::open(raw.plot));
  }
  return {};
}

Status complete(const Raw& raw, Arguments& arguments) {
  TIERD_ASSIGN(arguments.config, load_config(arguments.config_file, arguments.overrides));
  TIERD_TRY(complete_sweep(raw, arguments));
  if (raw.format == "json") arguments.format = Format::json;
  if (raw.format == "csv") arguments.format = Format::csv;
  if (!raw.text_file.empty()) {
    TIERD_ASSIGN(std::string text, read_file_or_pipe(raw.text_file));
    arguments.text = TextArguments{raw.text_file, std::move(text)};
  }

  // With a peer, one rate is compared, so only requested tests are measured.
  const bool alone = raw.peer.empty();
  const uint32_t prompt = raw.prompt.value_or(alone && !arguments.text ? kDefaultPrompt : 0);
  const uint32_t generate = raw.generate.value_or(alone || prompt == 0 ? kDefaultGenerate : 0);
  if (prompt > 0) arguments.tests.push_back({Workload::Kind::prefill, prompt});
  if (generate > 0) arguments.tests.push_back({Workload::Kind::decode, generate});
  if (arguments.tests.empty()) {
    return Error{Code::invalid_argument, "tier-bench", "-p 0 and -n 0 leave nothing to measure"};
  }
  if (!alone && arguments.tests.size() != 1) {
    return Error{Code::invalid_argument, "--peer", "one rate is compared: give -p or -n, not both"};
  }
  const auto settle = [&](Config& config) -> Status {
    apply(raw, config);
    // The length of a text is known only to the model's tokenizer.
    if (config.context == 0 && !arguments.text) config.context = std::max(prompt, generate);
    if (prompt <= config.context) return {};
    return Error{Code::invalid_argument, "-p",
                 fmt::format("{} tokens do not fit a context of {} (-c)", prompt, config.context)};
  };
  TIERD_TRY(settle(arguments.config));
  if (arguments.sweep) {
    for (SweepPoint& point : arguments.sweep->points) TIERD_TRY(settle(point.config));
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
  CommandLine line("tier-bench", kDescription);
  line.option("--config", arguments.config_file, "configuration, see configs/").named("FILE");
  line.option("--set", arguments.overrides, "a key over the configuration's, see tierd --help")
      .named("KEY=VALUE");
  line.option("-m,--model", raw.model, "the model").named("PATH");
  const Argument prompt = line.option("-p,--n-prompt", raw.prompt,
                                      fmt::format("tokens of a prompt, 0 is none [{}]", kDefaultPrompt))
                              .named("N");
  line.option("-n,--n-gen", raw.generate,
              fmt::format("tokens decoded from an empty context, or after the text; 0 is none [{}]",
                          kDefaultGenerate))
      .named("N");
  const Argument text = line.option("-f,--file", raw.text_file,
                                    "a text that the model continues, always with the most probable token; "
                                    "how fast it reads the text is not measured")
                            .named("FILE")
                            .excludes(prompt);
  const Argument repetitions = line.option("-r,--repetitions", raw.repetitions,
                                           fmt::format("blocks of each test [{}]", kDefaultRounds))
                                   .named("N")
                                   .between(1, 1000);
  line.option("-c,--ctx-size", raw.context, "positions of the context [what -p and -n need]").named("N");
  line.option("-t,--threads", raw.threads, "compute workers, 0 is one a core").named("N");
  line.option("--ub,--ubatch-size", raw.ubatch, "most tokens of a prefill chunk").named("N");
  line.option("-s,--seed", raw.seed, "of the tokens").named("N");
  line.option("--block-seconds", arguments.block_seconds,
              "repeat the test in a block for at least so long; the context is emptied when full")
      .named("S")
      .between(0.0, 86400.0)
      .excludes(text);
  line.option("--warmup-seconds", arguments.warmup_seconds, "run so long before the first block")
      .named("S")
      .between(0.0, 86400.0);
  const Argument sweep =
      line.option("--sweep", raw.sweep,
                  "measure at each of these values of a key that --set takes, in turn; given twice, at each "
                  "pair")
          .named("KEY=V,V...");
  line.option("--plot", raw.plot,
              "draw the sweep: .svg, .png or .pdf, by gnuplot; .gp is the script that it would get")
      .named("FILE")
      .needs(sweep);
  Argument peer =
      line.option("--peer", raw.peer, "a shell command to run after each block of ours").named("CMD");
  Argument rate =
      line.option("--peer-rate", raw.peer_rate, "finds the peer's tokens/s in its output, first group")
          .named("REGEX");
  peer.needs(rate).excludes(repetitions).excludes(sweep);
  rate.needs(peer);
  line.option("--rounds", raw.rounds, fmt::format("times ours and the peer take turns [{}]", kDefaultRounds))
      .named("N")
      .between(1, 1000)
      .needs(peer);
  line.flag("--keep", raw.keep, "keep the model in memory while the peer runs").needs(peer);
  line.flag("--fit", arguments.fit, "raise a budget that is too small to the least that would do");
  line.option("-o,--output", raw.format, "md, json or csv").one_of({"md", "json", "csv"});
  line.flag("-q,--quiet", arguments.quiet, "no progress");
  parsed.exit_code = line.parse(argc, argv);
  if (parsed.exit_code) return parsed;
  if (const Status status = complete(raw, arguments); !status.ok()) {
    fmt::print(stderr, "{}\n", status.error().line());
    parsed.exit_code = 2;
  }
  return parsed;
}

}  // namespace tierd
