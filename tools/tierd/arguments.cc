#include "tools/tierd/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace tierd {
namespace {

constexpr const char* kDescription =
    "tierd runs language models larger than memory: what the DRAM budget holds stays, the rest streams from "
    "flash.\n"
    "\n"
    "  tierd --config configs/hybrid.toml -m llama-2-7b.Q4_0.gguf -p \"Once upon a time\" -n 64\n"
    "  tierd --config configs/hybrid.toml -m model/ --set tiers.dram.capacity=50% --check\n"
    "\n"
    "Generated text goes to stdout, everything else to stderr.";

constexpr const char* kFooter =
    "\nA model is a GGUF file (the first of its shards), a Hugging Face folder, a llama2.c checkpoint or a "
    "store\n"
    "made by tier-convert. Other formats are converted once into $TIERD_CACHE (else ~/.cache/tierd).\n"
    "\n"
    "Exit: 0 done; 1 a run failed; 2 a bad argument, model, store or configuration; 128 + N ended by signal "
    "N.\n"
    "\n"
    "Keys of the configuration, for the TOML file and --set:\n";

}  // namespace

Parsed parse_arguments(int argc, char** argv) {
  Parsed parsed;
  Arguments& arguments = parsed.arguments;
  std::string file, model, tokenizer, prompt_file;
  std::vector<std::string> overrides;
  std::optional<uint32_t> threads, context, ubatch;
  std::optional<uint64_t> seed;

  CLI::App app{kDescription, "tierd"};
  app.get_formatter()->column_width(34);
  app.footer([] { return kFooter + config_manual(); });
  app.set_version_flag("--version", "tierd 0.1.0");
  app.add_option("--config", file, "configuration, see configs/")->type_name("FILE");
  app.add_option("--set", overrides, "a key over the configuration's, e.g. tiers.dram.capacity=50%")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("-m,--model", model, "the model")->type_name("PATH");
  app.add_option("--tokenizer", tokenizer, "a tokenizer to use instead of the model's")->type_name("FILE");
  auto* prompt =
      app.add_option("-p,--prompt", arguments.prompt, "the prompt; empty is BOS alone")->type_name("TEXT");
  app.add_option("-f,--file", prompt_file, "read the prompt from a file")
      ->type_name("FILE")
      ->excludes(prompt);
  app.add_option("-n,--predict,--n-predict", arguments.predict,
                 "tokens to generate, -1 until the model ends or the context is full")
      ->type_name("N");
  app.add_option("-c,--ctx-size", context, "positions of the context, 0 is the model's but at most 4096")
      ->type_name("N");
  app.add_option("-t,--threads", threads, "compute workers, 0 is one a core")->type_name("N");
  app.add_option("--ub,--ubatch-size", ubatch, "most tokens of a prefill chunk (also -ub)")->type_name("N");
  app.add_option("-s,--seed", seed, "of sampling")->type_name("N");
  app.add_option("--temp", arguments.sampling.temperature, "temperature, 0 is greedy")->capture_default_str();
  app.add_option("--top-k", arguments.sampling.top_k, "keep the k most probable, 0 is all")
      ->capture_default_str();
  app.add_option("--top-p", arguments.sampling.top_p, "keep the most probable up to this sum")
      ->capture_default_str();
  app.add_option("--min-p", arguments.sampling.min_p, "keep those at least so probable beside the best")
      ->capture_default_str();
  app.add_flag("--ignore-eos", arguments.ignore_eos, "go on after the model ends its text");
  app.add_flag("--special", arguments.special, "print control tokens, too");
  app.add_flag("--fit", arguments.fit, "raise a budget that is too small to the least that would do");
  app.add_flag("--check", arguments.check, "print the plan and what it should bring, and stop");
  app.add_flag("--json", arguments.json, "stdout is one JSON object: text and report");
  app.add_flag("-q,--quiet", arguments.quiet, "no progress and no report");
  // llama.cpp writes this one with a single dash, which the parser takes for a bundle of short flags.
  std::vector<std::string> words;
  for (int i = argc - 1; i >= 1; --i) words.emplace_back(std::string_view(argv[i]) == "-ub" ? "--ub" : argv[i]);
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& success) {
    parsed.exit_code = app.exit(success);
    return parsed;
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "tierd: %s (see tierd --help)\n", error.what());
    parsed.exit_code = 2;
    return parsed;
  }

  const auto fail = [&](const std::string& line) {
    std::fprintf(stderr, "%s\n", line.c_str());
    parsed.exit_code = 2;
    return parsed;
  };
  auto config = load_config(file, overrides);
  if (!config.ok()) return fail(config.error().line());
  arguments.config = std::move(*config);
  if (!model.empty()) arguments.config.model = model;
  if (!tokenizer.empty()) arguments.config.tokenizer = tokenizer;
  if (threads) arguments.config.threads = *threads;
  if (context) arguments.config.context = *context;
  if (ubatch) arguments.config.ubatch = *ubatch;
  if (seed) arguments.config.seed = *seed;
  arguments.sampling.seed = arguments.config.seed;
  if (!prompt_file.empty()) {
    std::ifstream in(prompt_file, std::ios::binary);
    if (!in) return fail("tierd: " + prompt_file + ": cannot be opened");
    std::stringstream text;
    text << in.rdbuf();
    arguments.prompt = text.str();
  }
  return parsed;
}

}  // namespace tierd
