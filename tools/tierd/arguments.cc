#include "tools/tierd/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/standard_streams.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/prompt_file.h"

namespace tierd {
namespace {

constexpr const char* kDescription =
    "Runs language models larger than memory: what the DRAM budget holds stays, the rest streams from "
    "flash.\n"
    "\n"
    "  tierd --config configs/hybrid.toml -m llama-2-7b.Q4_0.gguf -p \"Once upon a time\" -n 64\n"
    "  tierd --config configs/hybrid.toml -m model/ --set tiers.dram.capacity=50% --check\n"
    "\n"
    "The generated text, and nothing else, goes to standard output; progress and report go to standard "
    "error.\n";

constexpr const char* kFooter = R"(
MODEL is a GGUF file (the first of its shards), a Hugging Face folder, a llama2.c checkpoint or a store made
by tier-convert. What is no store yet is converted once into a cache folder ($TIERD_CACHE, else
$XDG_CACHE_HOME/tierd, else ~/.cache/tierd); all configurations share that store.

Exit status:
  0        done
  1        the run failed: a disk or an output that does not work, a faulty plugin
  2        unusable arguments, configuration, model or store; one line on standard error says why
  128 + N  ended by signal N, within a second: 130 SIGINT, 143 SIGTERM

SIGHUP, with --config: the file is read again before the next step, and another tiers.dram.capacity becomes the
budget: what is resident shrinks or grows, and the text stays the same. Other keys take a restart; one line on
standard error tells of each change.

Keys of the configuration, for the TOML file and --set, with their defaults; what a plugin takes beside them in its
table, --plugin NAME prints:
)";

}  // namespace

Parsed parse_arguments(int argc, char** argv) {
  Parsed parsed;
  Arguments& arguments = parsed.arguments;
  std::string model, tokenizer, prompt_file, trace;
  std::vector<std::string> plugin_folders;
  std::optional<uint32_t> threads, context, ubatch;
  std::optional<uint64_t> seed;

  CommandLine line("tierd", kDescription);
  line.footer([] { return kFooter + config_manual(); });
  line.version("tierd 0.1.0");
  line.option("--config", arguments.config_file, "the configuration, a TOML file such as those of configs/")
      .named("FILE");
  line.option("--set", arguments.overrides, "a key and its value over the configuration's; may be repeated")
      .named("KEY=VALUE");
  line.option("--plugin-path", plugin_folders,
              "a folder with plugins (KIND-NAME.so), before those of the configuration and of "
              "$TIERD_PLUGIN_PATH; may be repeated")
      .named("DIR");
  line.flag("--plugins", arguments.list_plugins, "list the plugins that are found, and stop");
  line.option("--plugin", arguments.plugin, "print the manual of a plugin (NAME or KIND-NAME), and stop")
      .named("NAME");
  line.option("-m,--model", model, "the model, see below").named("MODEL");
  line.option("--tokenizer", tokenizer, "a tokenizer to use instead of the model's").named("FILE");
  const Argument prompt =
      line.option("-p,--prompt", arguments.prompt, "the prompt; empty: the model's BOS token alone")
          .named("TEXT");
  line.option("-f,--file", prompt_file, "a file that holds the prompt").named("FILE").excludes(prompt);
  line.option("-n,--predict,--n-predict", arguments.predict,
              "tokens to generate; -1, the default: until the model ends its text or the context is full")
      .named("N");
  line.option("-c,--ctx-size", context, "positions of the context; 0: the model's, but at most 4096")
      .named("N");
  line.option("-t,--threads", threads, "threads that compute; 0: one a core").named("N");
  line.option("--ub,--ubatch-size", ubatch, "most tokens of the prompt in one pass (also -ub)").named("N");
  line.option("-s,--seed", seed, "seed of sampling: the same seed gives the same text").named("N");
  line.option("--temp", arguments.sampling.temperature,
              "temperature of sampling; 0: always the most probable token")
      .shows_default();
  line.option("--top-k", arguments.sampling.top_k, "draw from the k most probable tokens; 0: from all")
      .shows_default();
  line.option("--top-p", arguments.sampling.top_p, "draw from the most probable ones up to this sum")
      .shows_default();
  line.option("--min-p", arguments.sampling.min_p,
              "draw from those at least so probable, relative to the best")
      .shows_default();
  const Argument draft =
      line.option("--model-draft", arguments.draft_model,
                  "a small model of the same vocabulary that guesses tokens, which the model then checks "
                  "several at once: the same text, sooner (also -md)")
          .named("MODEL");
  line.flag("--prompt-lookup", arguments.prompt_lookup, "guess tokens from what the text has said before")
      .excludes(draft);
  line.option("--draft-max", arguments.draft_most, "most tokens guessed at once").named("N").shows_default();
  line.flag("--ignore-eos", arguments.ignore_eos, "go on where the model would end its text");
  line.flag("--special", arguments.special, "print control tokens as well");
  line.flag("--fit", arguments.fit,
            "raise a budget that is too small to the least that would do, instead of refusing it");
  line.flag("--check", arguments.check,
            "print the plan (what lies where, bytes a token, expected speed) and stop");
  line.option("--trace", trace, "record what the kernel does in this file, for tier-trace").named("FILE");
  line.flag("--json", arguments.json, "print one JSON object instead: text and report, or the plan");
  line.flag("-q,--quiet", arguments.quiet, "no progress and no report; errors only");
  // llama.cpp writes these with a single dash, which the parser takes for a bundle of short flags.
  std::vector<std::string> words = words_of(argc, argv);
  std::replace(words.begin(), words.end(), std::string("-ub"), std::string("--ub"));
  std::replace(words.begin(), words.end(), std::string("-md"), std::string("--model-draft"));
  parsed.exit_code = line.parse(std::move(words));
  if (parsed.exit_code) return parsed;

  const auto fail = [&](const std::string& why) {
    say(why);
    parsed.exit_code = 2;
    return parsed;
  };
  auto config = load_config(arguments.config_file, arguments.overrides);
  if (!config.ok()) return fail(config.error().line());
  arguments.read_config = *config;
  arguments.config = std::move(*config);
  for (auto folder = plugin_folders.rbegin(); folder != plugin_folders.rend(); ++folder) {
    std::string& path = arguments.config.plugin_path;
    path = *folder + (path.empty() ? "" : ":") + path;
  }
  if (!model.empty()) arguments.config.model = model;
  if (!tokenizer.empty()) arguments.config.tokenizer = tokenizer;
  if (!trace.empty()) arguments.config.trace = trace;
  if (threads) arguments.config.threads = *threads;
  if (context) arguments.config.context = *context;
  if (ubatch) arguments.config.ubatch = *ubatch;
  if (seed) arguments.config.seed = *seed;
  if (arguments.draft_most == 0 || arguments.draft_most > 63)
    return fail(fmt::format("--draft-max: {} is not within 1 and 63", arguments.draft_most));
  arguments.sampling.seed = arguments.config.seed;
  if (!prompt_file.empty()) {
    auto text = read_prompt_file(prompt_file);
    if (!text.ok()) return fail(text.error().line());
    arguments.prompt = std::move(*text);
  }
  return parsed;
}

}  // namespace tierd
