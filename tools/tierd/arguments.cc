#include "tools/tierd/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "core/base/file.h"
#include "core/base/log.h"
#include "core/model/text/chat_template.h"
#include "tools/command_line/command_line.h"
#include "tools/tierd/help.h"
#include "tools/tierd/llama_flags.h"

namespace tierd {
namespace {

// Parses TOKEN+BIAS or TOKEN-BIAS.
Result<std::pair<uint32_t, float>> parse_logit_bias(const std::string& text) {
  const size_t sign = text.find_first_of("+-");
  uint32_t token = 0;
  float bias = 0;
  if (sign != std::string::npos) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    const char* const number = begin + sign + (text[sign] == '+' ? 1 : 0);
    const auto id = std::from_chars(begin, begin + sign, token);
    const auto value = std::from_chars(number, end, bias);
    const bool read =
        id.ec == std::errc() && id.ptr == begin + sign && value.ec == std::errc() && value.ptr == end;
    if (read) return std::pair(token, bias);
  }
  return Error{Code::invalid_argument, "--logit-bias",
               fmt::format("'{}' is not TOKEN+BIAS or TOKEN-BIAS, such as 15043+1", text)};
}

// `biases` and `samplers` receive the texts of their flags, unparsed.
void add_sampling(CommandLine& line, SamplerOptions& sampling, std::vector<std::string>& biases,
                  std::string& samplers) {
  line.option("--samplers", samplers,
              "which of those that follow there are, and in which order; a letter for each will do as well, "
              "such as kpt")
      .named("NAME;NAME...")
      .shows_default();
  line.option("--temp", sampling.temperature, "temperature of sampling; 0: always the most probable token")
      .shows_default();
  line.option("--top-k", sampling.top_k, "draw from the k most probable tokens; 0: from all").shows_default();
  line.option("--top-p", sampling.top_p, "draw from the most probable ones up to this sum").shows_default();
  line.option("--min-p", sampling.min_p, "draw from those at least so probable, relative to the best")
      .shows_default();
  line.option("--typical", sampling.typical_p,
              "draw from those of nearly average information up to this sum; 1: from all")
      .shows_default();
  line.option("--top-nsigma", sampling.top_n_sigma,
              "draw from logits within so many standard deviations of the highest; -1: from all")
      .shows_default();
  line.option("--xtc-probability", sampling.xtc_probability,
              "how often the most probable tokens are left out, but for the last of them")
      .shows_default();
  line.option("--xtc-threshold", sampling.xtc_threshold, "those that are at least so probable")
      .shows_default();
  PenaltyOptions& penalties = sampling.penalties;
  line.option("--repeat-last-n", penalties.repeat_last_n,
              "tokens that penalties look back on; 0: none, -1: all")
      .shows_default();
  line.option("--repeat-penalty", penalties.repeat_penalty,
              "divides the positive logits of what was said, multiplies the negative ones; 1: off")
      .shows_default();
  line.option("--presence-penalty", penalties.presence_penalty, "taken from the logits of what was said")
      .shows_default();
  line.option("--frequency-penalty", penalties.frequency_penalty, "the same, each time that it was said")
      .shows_default();
  line.option("-l,--logit-bias", biases,
              "added to the logit of a token, such as 15043+1 or 29871-inf; may be repeated")
      .named("TOKEN(+|-)BIAS");
}

// Adds the flags of a server. Returns those that only a server uses.
std::vector<Argument> add_serving(CommandLine& line, Arguments& arguments, std::string& key_file,
                                  std::optional<uint32_t>& sequences) {
  std::vector<Argument> of_server;
  of_server.push_back(line.option("--host", arguments.host, "the address to serve on")
                          .shows_default()
                          .or_variable("LLAMA_ARG_HOST"));
  of_server.push_back(line.option("--port", arguments.port, "the port to serve on; 0: any that is free")
                          .between(0, 65535)
                          .shows_default()
                          .or_variable("LLAMA_ARG_PORT"));
  line.option("--api-key", arguments.api_keys, "a key that clients must show; may be repeated")
      .named("KEY")
      .or_variable("LLAMA_API_KEY");
  line.option("--allowed-host", arguments.allowed_hosts,
              "a name by which clients may call the server beside its address, localhost and the machine's; "
              "may be "
              "repeated; *: any")
      .named("NAME");
  line.option("--cors-origins", arguments.cors_origins,
              "an origin whose pages may ask (https://chat.example); may be repeated; *: all")
      .named("ORIGIN");
  line.option("--api-key-file", key_file, "a file of such keys, one a line").named("FILE");
  line.option("-a,--alias", arguments.alias, "what clients call the model")
      .named("NAME")
      .or_variable("LLAMA_ARG_ALIAS");
  line.option("--chat-template", arguments.chat_template,
              "the form of chats: " + fmt::format("{}", fmt::join(ChatTemplate::names(), ", ")) +
                  "; else the model's own, where that is known whole")
      .named("NAME")
      .or_variable("LLAMA_ARG_CHAT_TEMPLATE");
  line.option("--parallel", sequences,
              "texts that are continued at once, each with a context of -c (also -np)")
      .named("N")
      .or_variable("LLAMA_ARG_N_PARALLEL");
  return of_server;
}

// Returns the mode of the run. `server`: the command line has a flag that only a server uses. --check
// without such a flag is of a text.
Mode mode_of(const Arguments& arguments, bool conversation, bool no_conversation, bool server) {
  if (conversation) return Mode::chat;
  if (arguments.prompt_given) return Mode::text;
  if (arguments.check && !server) return Mode::text;
  const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  return terminal && !server && !no_conversation ? Mode::chat : Mode::serve;
}

// Replaces the escapes of C that are known here, and keeps others.
std::string without_escapes(const std::string& text) {
  constexpr std::string_view kFrom = "ntr\"'\\", kTo = "\n\t\r\"'\\";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const size_t known =
        text[i] == '\\' && i + 1 < text.size() ? kFrom.find(text[i + 1]) : std::string_view::npos;
    out += known == std::string_view::npos ? text[i] : kTo[known];
    if (known != std::string_view::npos) ++i;
  }
  return out;
}

// Copies the model of -hf into `arguments`. Where the environment names one model and the command line
// another, the command line wins. Error: invalid_argument.
Status take_hub(const std::string& repository, const std::string& file, std::string& model,
                Arguments& arguments) {
  const auto of_environment = [](const std::string& value, const char* name) {
    const char* const set = std::getenv(name);
    return set != nullptr && value == set;
  };
  if (repository.empty()) {
    if (file.empty() || of_environment(file, "LLAMA_ARG_HF_FILE")) return {};
    return Error{Code::invalid_argument, "--hf-file",
                 "names a file of a repository: give that with --hf-repo"};
  }
  if (!model.empty() && of_environment(repository, "LLAMA_ARG_HF_REPO")) return {};
  if (!model.empty() && !of_environment(model, "LLAMA_ARG_MODEL")) {
    return Error{Code::invalid_argument, "--hf-repo",
                 fmt::format("one model is expected, and '{}' is given as well", model)};
  }
  model.clear();
  TIERD_ASSIGN(arguments.hub, parse_hub_request(repository, file));
  if (arguments.alias.empty()) arguments.alias = repository;
  return {};
}

// Adds the keys of a file. A file without a key is an error: its server would be open.
Status add_keys(const std::string& path, std::vector<std::string>& keys) {
  TIERD_ASSIGN(const std::string text, read_file_or_pipe(path));
  const size_t before = keys.size();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty()) keys.push_back(line);
  }
  if (keys.size() == before)
    return Error{Code::invalid_argument, path, "has no key: one a line was expected"};
  return {};
}

}  // namespace

Parsed parse_arguments(int argc, char** argv) {
  Parsed parsed;
  Arguments& arguments = parsed.arguments;
  std::string model, tokenizer, prompt_file, trace, timeline, key_file, log_format = "text", fit = "on";
  std::string kv_keys, kv_values, system_file, hub_repository, hub_file, draft_repository, draft_model;
  std::vector<std::string> plugin_folders, biases, plain;
  std::string samplers = samplers_text(arguments.sampling.samplers);
  std::optional<uint32_t> threads, context, batch, ubatch, sequences, most_guesses;
  bool conversation = false, no_conversation = false, escapes = false, no_escapes = false, lookup = false;
  std::optional<uint64_t> seed;

  CommandLine line("tierd", kDescription);
  line.footer([] { return kFooter + config_manual(); });
  line.brief(kBriefHelp);
  line.option("model", plain, "the model; `serve` before it serves").named("[serve] MODEL");
  line.group("Configuration");
  line.option("--config", arguments.config_file, "the configuration, a TOML file such as those of configs/")
      .named("FILE")
      .or_variable("TIERD_CONFIG");
  line.option("--set", arguments.overrides, "a key and its value over the configuration's; may be repeated")
      .named("KEY=VALUE");
  line.option("--plugin-path", plugin_folders,
              "a folder with plugins (KIND-NAME.so), before those of the configuration and of "
              "$TIERD_PLUGIN_PATH; may be repeated")
      .named("DIR");
  line.flag("--plugins", arguments.list_plugins, "list the plugins that are found, and stop");
  line.option("--plugin", arguments.plugin, "print the manual of a plugin (NAME or KIND-NAME), and stop")
      .named("NAME");
  line.flag("--figures", arguments.list_figures, "print the page of all figures of reports, and stop");
  line.group("Model and text");
  line.option("-m,--model", model, "the model, see below").named("MODEL").or_variable("LLAMA_ARG_MODEL");
  line.option(
          "--hf-repo", hub_repository,
          "the model by its name on huggingface.co, of which the cache has it or it is downloaded; quant: "
          "Q4_K_M, else Q8_0, else the first GGUF file (also -hf, -hfr)")
      .named("OWNER/REPO[:QUANT]")
      .or_variable("LLAMA_ARG_HF_REPO");
  line.option("--hf-file", hub_file, "a file of that repository instead of a quant (also -hff)")
      .named("FILE")
      .or_variable("LLAMA_ARG_HF_FILE");
  line.option("--hf-token", arguments.hub_token,
              "the access token for it; $HF_TOKEN is better, which other users do not see (also -hft)")
      .named("TOKEN");
  line.flag("--offline", arguments.offline, "take it from the cache alone").or_variable("LLAMA_ARG_OFFLINE");
  line.option("--tokenizer", tokenizer, "a tokenizer to use instead of the model's").named("FILE");
  const Argument prompt =
      line.option("-p,--prompt", arguments.prompt, "the prompt; empty: the model's BOS token alone")
          .named("TEXT");
  const Argument file =
      line.option("-f,--file", prompt_file, "a file that holds the prompt").named("FILE").excludes(prompt);
  line.group("Server");
  const std::vector<Argument> of_server = add_serving(line, arguments, key_file, sequences);
  line.group("Model and text");
  line.option("-n,--predict,--n-predict", arguments.predict,
              "tokens to generate; -1, the default: until the model ends its text or the context is full")
      .named("N")
      .or_variable("LLAMA_ARG_N_PREDICT");
  line.flag("-e,--escape", escapes,
            "\\n, \\t, \\r, \\\", \\' and \\\\ of the prompt and of -r stand for what they do in C");
  line.flag("--no-escape", no_escapes, "the prompt is taken as it is, which is the default");
  line.option("--system-prompt", arguments.system_prompt, "what a chat begins with (also -sys)")
      .named("TEXT");
  line.option("--system-prompt-file", system_file, "a file that holds it (also -sysf)").named("FILE");
  line.flag("--conversation", conversation, "chat, whatever standard input is (also -cnv)");
  line.flag("--no-conversation", no_conversation, "do not chat: without a prompt, serve (also -no-cnv)");
  line.flag("--single-turn", arguments.single_turn, "a chat ends with the first answer (also -st)");
  line.option("-c,--ctx-size", context, "positions of the context; 0: the model's, but at most 4096")
      .named("N")
      .or_variable("LLAMA_ARG_CTX_SIZE");
  line.option("-t,--threads", threads, "threads that compute; 0: one a core")
      .named("N")
      .or_variable("LLAMA_ARG_THREADS");
  line.option("-b,--batch-size", batch, "the same as -ub; the smaller of them counts").named("N");
  line.option("--cache-type-k", kv_keys, "encoding of the KV cache; both are the same (also -ctk)")
      .one_of({"f16", "f32"});
  line.option("--cache-type-v", kv_values, "the same (also -ctv)").one_of({"f16", "f32"});
  line.option("--ubatch-size", ubatch, "most tokens of the prompt in one pass (also -ub)")
      .named("N")
      .or_variable("LLAMA_ARG_UBATCH");
  line.option("-s,--seed", seed, "seed of sampling: the same seed gives the same text").named("N");
  line.group("Sampling");
  add_sampling(line, arguments.sampling, biases, samplers);
  line.group("Guesses");
  const Argument draft =
      line.option("--model-draft", draft_model,
                  "a small model of the same vocabulary that guesses tokens, which the model then checks "
                  "several at once: the same text, sooner (also -md)")
          .named("MODEL");
  const Argument hub_draft =
      line.option("--hf-repo-draft", draft_repository, "the same by its name, as --hf-repo (also -hfd)")
          .named("OWNER/REPO[:QUANT]")
          .excludes(draft);
  line.flag("--prompt-lookup", lookup, "guess tokens from what the text has said before")
      .excludes(draft)
      .excludes(hub_draft);
  line.option("--draft-max", most_guesses, "most tokens guessed at once (default: 4)").named("N");
  line.group("Model and text");
  line.flag("--ignore-eos", arguments.ignore_eos, "go on where the model would end its text");
  line.flag("--special", arguments.special, "print control tokens as well");
  line.option(
          "-r,--reverse-prompt", arguments.stops,
          "a text that ends what the model says, and is no part of it; it may name control tokens; may be "
          "repeated; requests that have \"stop\" have their own")
      .named("TEXT");
  line.group("Fit");
  const Argument fits =
      line.option("--fit", fit,
                  "on: a context that was not given is shortened until it fits; said on the command line, a "
                  "budget that is too small is raised as well, to the least that would do. off: both are "
                  "refused")
          .one_of({"on", "off"})
          .shows_default()
          .or_variable("LLAMA_ARG_FIT");
  line.option("--fit-ctx", arguments.shortest_context, "down to so many positions (also -fitc)")
      .named("N")
      .shows_default();
  line.flag("--force", arguments.force,
            "take a capacity that is more than there is, and run a configuration whose text, as tier-compare "
            "has measured, is not the model's: more than 0.1 nats a token");
  line.flag("--check", arguments.check,
            "print the plan (what lies where, bytes a token, expected speed) and stop");
  line.group("Output");
  line.option("--trace", trace, "record what the kernel does in this file, for tier-trace").named("FILE");
  line.option("--timeline", timeline,
              "write when what was computed and read to this file at the end, to be opened in "
              "ui.perfetto.dev; the report says how much of the reading was hidden")
      .named("FILE");
  line.flag("--json", arguments.json,
            "print one JSON object instead: text and report, or what --check found");
  line.option("--log-format", log_format,
              "how standard error is written: lines for people, or JSON, one object a line")
      .one_of({"text", "json"})
      .shows_default();
  line.flag("-q,--quiet", arguments.quiet, "no progress and no report; errors only");
  const auto fail = [&](const std::string& why) {
    say(why);
    parsed.exit_code = 2;
    return parsed;
  };
  auto words =
      from_llama(words_of(argc, argv), [&](std::string_view name) { return line.takes_value(name); });
  if (!words.ok()) return fail("tierd: " + words.error().detail + " (see tierd --help)");
  for (size_t i = 0; i < words->size(); ++i) {
    if ((*words)[i] == "--plan" && (i == 0 || !line.takes_value((*words)[i - 1])))
      return fail(
          "--plan: a program of its own finds the settings: tier plan --config FILE -m MODEL --set "
          "KEY=VALUE");
  }
  parsed.exit_code = line.parse(std::move(*words));
  if (parsed.exit_code) return parsed;
  arguments.shorten = fit == "on";
  arguments.fit = fits.given() && fit == "on";
  set_log_format(log_format == "json" ? LogFormat::json : LogFormat::text);

  auto config = load_config(arguments.config_file, arguments.overrides);
  if (!config.ok()) return fail(config.error().line());
  arguments.read_config = *config;
  arguments.config = std::move(*config);
  for (auto folder = plugin_folders.rbegin(); folder != plugin_folders.rend(); ++folder) {
    std::string& path = arguments.config.plugin_path;
    path = *folder + (path.empty() ? "" : ":") + path;
  }
  const bool serve = !plain.empty() && plain.front() == "serve";
  if (serve) plain.erase(plain.begin());
  if (plain.size() > 1 || (!plain.empty() && !model.empty())) {
    return fail(fmt::format("tierd: '{}': one model is expected, and the prompt behind -p (see tierd --help)",
                            plain.back()));
  }
  if (!plain.empty()) model = plain.front();
  if (!draft_repository.empty()) {
    auto asked = parse_hub_request(draft_repository, "");
    if (!asked.ok()) return fail("--hf-repo-draft: " + asked.error().detail);
    arguments.draft_hub = std::move(*asked);
  }
  const Status hub = take_hub(hub_repository, hub_file, model, arguments);
  if (!hub.ok()) return fail(hub.error().line());
  if (!model.empty()) arguments.config.model = model;
  if (!tokenizer.empty()) arguments.config.tokenizer = tokenizer;
  if (!trace.empty()) arguments.config.trace = trace;
  if (!timeline.empty()) arguments.config.timeline = timeline;
  if (threads) arguments.config.threads = *threads;
  if (context) arguments.config.context = *context;
  if (batch) arguments.config.ubatch = std::min(arguments.config.ubatch, *batch);
  if (ubatch) arguments.config.ubatch = std::min(*ubatch, batch.value_or(*ubatch));
  if (!kv_keys.empty() && !kv_values.empty() && kv_keys != kv_values)
    return fail("--cache-type-k and --cache-type-v: keys and values have one encoding here");
  if (!kv_keys.empty() || !kv_values.empty()) arguments.config.kv = kv_keys.empty() ? kv_values : kv_keys;
  if (sequences) arguments.config.sequences = *sequences;
  if (seed) arguments.config.seed = *seed;
  SpeculationConfig& speculation = arguments.config.speculation;
  if (most_guesses && (*most_guesses == 0 || *most_guesses > 63))
    return fail(fmt::format("--draft-max: {} is not within 1 and 63", *most_guesses));
  if (most_guesses) speculation.most = *most_guesses;
  // A flag replaces the [speculation] of the file.
  if (lookup || draft.given() || hub_draft.given())
    speculation.lookup = lookup, speculation.model = draft_model;
  arguments.sampling.seed = arguments.config.seed;
  auto chain = parse_samplers(samplers, "--samplers, --sampler-seq");
  if (!chain.ok()) return fail(chain.error().line());
  arguments.sampling.samplers = std::move(*chain);
  for (const std::string& text : biases) {
    const auto bias = parse_logit_bias(text);
    if (!bias.ok()) return fail(bias.error().line());
    arguments.sampling.logit_bias.push_back(*bias);
  }
  if (const auto sampler = Sampler::create(arguments.sampling); !sampler.ok())
    return fail(sampler.error().line());
  arguments.prompt_given = prompt.given() || file.given();
  if (conversation && no_conversation) return fail("--conversation and --no-conversation: one of them");
  if (escapes && no_escapes) return fail("--escape and --no-escape: one of them");
  if (serve && arguments.prompt_given) return fail("serve: a server has no prompt (-p, -f)");
  arguments.mode = mode_of(arguments, conversation, no_conversation,
                           serve || std::ranges::any_of(of_server, &Argument::given));
  if (arguments.mode == Mode::chat && arguments.json)
    return fail("--json is for one text: give a prompt (-p)");
  const bool guesses = speculation.guesses() || hub_draft.given();
  if (arguments.mode == Mode::chat && guesses && !arguments.check) {
    return fail(
        "--model-draft, --prompt-lookup and [speculation] are for one text (-p) and for the server, not for "
        "chats");
  }
  if (arguments.serves() && arguments.json && !arguments.check)
    return fail("--json is for one text or a check: give a prompt (-p) or --check");
  if (!key_file.empty()) {
    const Status keys = add_keys(key_file, arguments.api_keys);
    if (!keys.ok()) return fail(keys.error().line());
  }
  for (const std::string& key : arguments.api_keys) {
    if (key.empty()) return fail("--api-key: an empty key would admit everybody");
  }
  if (!prompt_file.empty()) {
    auto text = read_file_or_pipe(prompt_file);
    if (!text.ok()) return fail(text.error().line());
    arguments.prompt = std::move(*text);
  }
  if (!system_file.empty()) {
    auto text = read_file_or_pipe(system_file);
    if (!text.ok()) return fail(text.error().line());
    arguments.system_prompt = std::move(*text);
  }
  if (escapes) {
    arguments.prompt = without_escapes(arguments.prompt);
    for (std::string& stop : arguments.stops) stop = without_escapes(stop);
  }
  for (const std::string& stop : arguments.stops) {
    if (stop.empty()) return fail("--reverse-prompt: an empty text would end nothing");
  }
  return parsed;
}

}  // namespace tierd
