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
               fmt::format("'{}' is not TOKEN+BIAS or TOKEN-BIAS; expected one such as 15043+1", text)};
}

// `biases` and `samplers` receive the texts of their flags, unparsed.
void add_sampling(CommandLine& line, SamplerOptions& sampling, std::vector<std::string>& biases,
                  std::string& samplers) {
  line.option("--samplers", samplers,
              "the samplers that are used, in this order: names separated by ';', or a letter for each, as "
              "in kpt")
      .named("NAME;NAME...")
      .shows_default();
  line.option("--temp", sampling.temperature, "temperature of sampling; 0: always the most probable token")
      .shows_default();
  line.option("--top-k", sampling.top_k, "draw from the k most probable tokens; 0: from all").shows_default();
  line.option("--top-p", sampling.top_p,
              "draw from the most probable tokens whose probabilities add up to this")
      .shows_default();
  line.option("--min-p", sampling.min_p,
              "draw from tokens whose probability is at least this share of the highest one")
      .shows_default();
  line.option("--typical", sampling.typical_p,
              "draw from the tokens nearest to the average information whose probabilities add up to this; "
              "1: from all")
      .shows_default();
  line.option("--top-nsigma", sampling.top_n_sigma,
              "draw from tokens whose logit is within this number of standard deviations of the highest; -1: "
              "from all")
      .shows_default();
  line.option("--xtc-probability", sampling.xtc_probability,
              "probability of leaving out all but the least probable of the tokens above --xtc-threshold")
      .shows_default();
  line.option("--xtc-threshold", sampling.xtc_threshold,
              "probability from which --xtc-probability applies to a token")
      .shows_default();
  PenaltyOptions& penalties = sampling.penalties;
  line.option("--repeat-last-n", penalties.repeat_last_n,
              "number of last tokens to which penalties apply; 0: none, -1: all")
      .shows_default();
  line.option("--repeat-penalty", penalties.repeat_penalty,
              "for tokens that occurred: divides positive logits, multiplies negative ones; 1: off")
      .shows_default();
  line.option("--presence-penalty", penalties.presence_penalty,
              "subtracted from the logits of tokens that occurred")
      .shows_default();
  line.option("--frequency-penalty", penalties.frequency_penalty,
              "subtracted from the logit of a token for each time that it occurred")
      .shows_default();
  line.option("-l,--logit-bias", biases,
              "added to the logit of a token, as in 15043+1 or 29871-inf; may be repeated")
      .named("TOKEN(+|-)BIAS");
}

// Adds the flags of a server. Returns those that only a server uses.
std::vector<Argument> add_serving(CommandLine& line, Arguments& arguments, std::string& key_file,
                                  std::optional<uint32_t>& sequences) {
  std::vector<Argument> of_server;
  of_server.push_back(line.option("--host", arguments.host, "the address to serve on")
                          .shows_default()
                          .or_variable("LLAMA_ARG_HOST"));
  of_server.push_back(line.option("--port", arguments.port, "the port to serve on; 0: any free one")
                          .between(0, 65535)
                          .shows_default()
                          .or_variable("LLAMA_ARG_PORT"));
  line.option("--api-key", arguments.api_keys, "a key that clients must send; may be repeated")
      .named("KEY")
      .or_variable("LLAMA_API_KEY");
  line.option("--allowed-host", arguments.allowed_hosts,
              "a name by which clients may address the server, beside its address, localhost and the "
              "machine's name; may be repeated; *: any")
      .named("NAME");
  line.option("--cors-origins", arguments.cors_origins,
              "an origin whose pages may send requests (https://chat.example); may be repeated; *: all")
      .named("ORIGIN");
  line.option("--api-key-file", key_file, "a file of keys that clients must send, one a line").named("FILE");
  line.option("-a,--alias", arguments.alias, "name of the model for clients")
      .named("NAME")
      .or_variable("LLAMA_ARG_ALIAS");
  line.option("--chat-template", arguments.chat_template,
              "the form of chats: " + fmt::format("{}", fmt::join(ChatTemplate::names(), ", ")) +
                  "; default: the model's own template")
      .named("NAME")
      .or_variable("LLAMA_ARG_CHAT_TEMPLATE");
  line.option("--chat-template-file", arguments.chat_template_file,
              "a file with the form of chats, in Jinja; default: the model's own template")
      .named("FILE")
      .or_variable("LLAMA_ARG_CHAT_TEMPLATE_FILE");
  line.option("--parallel", sequences,
              "number of texts that are generated at once, each with a context of -c (also -np)")
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
                 "is a file of a repository; name the repository with --hf-repo"};
  }
  if (!model.empty() && of_environment(repository, "LLAMA_ARG_HF_REPO")) return {};
  if (!model.empty() && !of_environment(model, "LLAMA_ARG_MODEL")) {
    return Error{Code::invalid_argument, "--hf-repo",
                 fmt::format("'{}' is set as well, expected one model", model)};
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
  if (keys.size() == before) return Error{Code::invalid_argument, path, "has no key, expected one a line"};
  return {};
}

// Parses the command line. Flags that are not copied as they are have a member each until they are checked.
struct Parser {
  Parsed parsed = {};
  Arguments& arguments = parsed.arguments;
  std::string model, tokenizer, prompt_file, trace, timeline, key_file, log_format = "text", fit = "on";
  std::string kv_keys, kv_values, system_file, hub_repository, hub_file, draft_repository, draft_model;
  std::vector<std::string> plugin_folders, biases, plain;
  std::string samplers = samplers_text(arguments.sampling.samplers);
  std::optional<uint32_t> threads, context, batch, ubatch, sequences, most_guesses;
  bool conversation = false, no_conversation = false, escapes = false, no_escapes = false, lookup = false;
  std::optional<uint64_t> seed;
  bool serve = false;  // the command
  Argument prompt{nullptr}, file{nullptr}, draft{nullptr}, hub_draft{nullptr}, fits{nullptr};
  std::vector<Argument> of_server = {};  // flags that only a server uses
  CommandLine line{"tierd", kDescription};

  void add_flags();
  // Return false after an error, which has been printed, or where the program should end.
  bool parse(int argc, char** argv);
  bool take_config();
  bool take_model();
  bool take_keys();
  bool take_sampling();
  bool choose_mode();
  bool read_files();

 private:
  void add_model();
  void add_text();
  void add_guesses();
  void add_fit();
  void add_output();
  bool fail(const std::string& why) {
    say(why);
    parsed.exit_code = 2;
    return false;
  }
};

void Parser::add_flags() {
  line.footer([] { return kFooter + config_manual(); });
  line.brief(kBriefHelp);
  line.option("model", plain, "the model; `serve` before it serves").named("[serve] MODEL");
  line.group("Configuration");
  line.option("--config", arguments.config_file, "a configuration: a TOML file, such as those in configs/")
      .named("FILE")
      .or_variable("TIERD_CONFIG");
  line.option("--set", arguments.overrides, "sets a key of the configuration; may be repeated")
      .named("KEY=VALUE");
  line.option("--plugin-path", plugin_folders,
              "a folder with plugins (KIND-NAME.so), searched before those of the configuration and of "
              "$TIERD_PLUGIN_PATH; may be repeated")
      .named("DIR");
  line.flag("--plugins", arguments.list_plugins, "list the plugins that are found, and stop");
  line.option("--plugin", arguments.plugin, "print the manual of a plugin (NAME or KIND-NAME), and stop")
      .named("NAME");
  line.flag("--figures", arguments.list_figures, "print the page of all figures of reports, and stop");
  add_model();
  line.group("Server");
  of_server = add_serving(line, arguments, key_file, sequences);
  add_text();
  line.group("Sampling");
  add_sampling(line, arguments.sampling, biases, samplers);
  add_guesses();
  add_fit();
  add_output();
}

void Parser::add_model() {
  line.group("Model and text");
  line.option("-m,--model", model, "the model, see below").named("MODEL").or_variable("LLAMA_ARG_MODEL");
  line.option("--hf-repo", hub_repository,
              "the model by its name on huggingface.co, from the cache or downloaded; default of QUANT: "
              "Q4_K_M, else Q8_0, else the first GGUF file (also -hf, -hfr)")
      .named("OWNER/REPO[:QUANT]")
      .or_variable("LLAMA_ARG_HF_REPO");
  line.option("--hf-file", hub_file, "a file of the repository of --hf-repo instead of a quant (also -hff)")
      .named("FILE")
      .or_variable("LLAMA_ARG_HF_FILE");
  line.option(
          "--hf-token", arguments.hub_token,
          "the access token for --hf-repo; $HF_TOKEN is safer, because other users cannot see it (also -hft)")
      .named("TOKEN");
  line.flag("--offline", arguments.offline, "use models of the cache only; download nothing")
      .or_variable("LLAMA_ARG_OFFLINE");
  line.option("--tokenizer", tokenizer, "a tokenizer that replaces the model's").named("FILE");
  prompt = line.option("-p,--prompt", arguments.prompt, "the prompt; empty: the model's BOS token alone")
               .named("TEXT");
  file = line.option("-f,--file", prompt_file, "a file with the prompt").named("FILE").excludes(prompt);
}

void Parser::add_text() {
  line.group("Model and text");
  line.option("-n,--predict,--n-predict", arguments.predict,
              "tokens to generate; -1, the default: until the model ends its text or the context is full")
      .named("N")
      .or_variable("LLAMA_ARG_N_PREDICT");
  line.flag("-e,--escape", escapes,
            "\\n, \\t, \\r, \\\", \\' and \\\\ in the prompt and in -r have their meaning in C");
  line.flag("--no-escape", no_escapes, "use the prompt as it is (the default)");
  line.option("--system-prompt", arguments.system_prompt, "the system prompt of a chat (also -sys)")
      .named("TEXT");
  line.option("--system-prompt-file", system_file, "a file with the system prompt (also -sysf)")
      .named("FILE");
  line.flag("--conversation", conversation, "chat, even if standard input is not a terminal (also -cnv)");
  line.flag("--no-conversation", no_conversation, "do not chat: without a prompt, serve (also -no-cnv)");
  line.flag("--single-turn", arguments.single_turn, "end the chat after the first answer (also -st)");
  line.option("-c,--ctx-size", context, "positions of the context; 0: the model's, at most 4096")
      .named("N")
      .or_variable("LLAMA_ARG_CTX_SIZE");
  line.option("-t,--threads", threads, "number of compute threads; 0: one for each core")
      .named("N")
      .or_variable("LLAMA_ARG_THREADS");
  line.option("-b,--batch-size", batch, "the same as -ub; the smaller of the two is used").named("N");
  line.option("--cache-type-k", kv_keys,
              "encoding of the keys of the KV cache, the same as of the values (also -ctk)")
      .one_of({"f16", "f32"});
  line.option("--cache-type-v", kv_values, "encoding of the values of the KV cache (also -ctv)")
      .one_of({"f16", "f32"});
  line.option("--ubatch-size", ubatch, "maximum number of the prompt's tokens in one pass (also -ub)")
      .named("N")
      .or_variable("LLAMA_ARG_UBATCH");
  line.option("-s,--seed", seed, "seed of sampling: the same seed gives the same text").named("N");
}

void Parser::add_guesses() {
  line.group("Guesses");
  draft = line.option("--model-draft", draft_model,
                      "a small model with the same vocabulary that guesses tokens, which the model checks "
                      "several at once: the same text in less time (also -md)")
              .named("MODEL");
  hub_draft =
      line.option("--hf-repo-draft", draft_repository,
                  "the model of --model-draft by its name on huggingface.co, as for --hf-repo (also -hfd)")
          .named("OWNER/REPO[:QUANT]")
          .excludes(draft);
  line.flag("--prompt-lookup", lookup, "guess tokens from repetitions in the text")
      .excludes(draft)
      .excludes(hub_draft);
  line.option("--draft-max", most_guesses, "maximum number of tokens guessed at once (default: 4)")
      .named("N");
}

void Parser::add_fit() {
  line.group("Model and text");
  line.flag("--ignore-eos", arguments.ignore_eos, "continue after the model's end token");
  line.flag("--special", arguments.special, "print control tokens as well");
  line.option("-r,--reverse-prompt", arguments.stops,
              "a text at which generation ends, and which is not part of the result; may name control "
              "tokens; may be repeated; \"stop\" of a request replaces it")
      .named("TEXT");
  line.group("Fit");
  fits =
      line.option("--fit", fit,
                  "on: shortens a context that was not set until it fits; if given on the command line, also "
                  "raises a budget that is too small to the minimum. off: refuses both")
          .one_of({"on", "off"})
          .shows_default()
          .or_variable("LLAMA_ARG_FIT");
  line.option("--fit-ctx", arguments.shortest_context,
              "minimum number of positions to which --fit shortens the context (also -fitc)")
      .named("N")
      .shows_default();
  line.flag("--force", arguments.force,
            "accept a capacity larger than the free memory, and a configuration whose loss, measured by tier "
            "compare, exceeds 0.1 nats a token");
  line.flag("--check", arguments.check, "print the plan (tiers, bytes a token, expected speed) and stop");
}

void Parser::add_output() {
  line.group("Output");
  line.option("--trace", trace, "write the kernel's messages and decisions to this file, for tier trace")
      .named("FILE");
  line.option("--timeline", timeline,
              "write the times of reads and computations to this file, to be opened in ui.perfetto.dev; the "
              "report has the share of reading that computing hid")
      .named("FILE");
  line.flag("--json", arguments.json,
            "print one JSON object instead: text and report, or the result of --check");
  line.option("--log-format", log_format, "form of standard error: lines of text, or JSON, one object a line")
      .one_of({"text", "json"})
      .shows_default();
  line.flag("-q,--quiet", arguments.quiet, "no progress and no report; errors only");
}

bool Parser::parse(int argc, char** argv) {
  auto words =
      from_llama(words_of(argc, argv), [&](std::string_view name) { return line.takes_value(name); });
  if (!words.ok()) return fail("tierd: " + words.error().detail + " (see tierd --help)");
  for (size_t i = 0; i < words->size(); ++i) {
    if ((*words)[i] == "--plan" && (i == 0 || !line.takes_value((*words)[i - 1])))
      return fail("--plan: is not a flag of tierd; use tier plan --config FILE -m MODEL --set KEY=VALUE");
  }
  parsed.exit_code = line.parse(std::move(*words));
  return !parsed.exit_code;
}

bool Parser::take_config() {
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
  return true;
}

bool Parser::take_model() {
  serve = !plain.empty() && plain.front() == "serve";
  if (serve) plain.erase(plain.begin());
  if (plain.size() > 1 || (!plain.empty() && !model.empty())) {
    return fail(fmt::format("tierd: '{}': found a second model; set a prompt with -p (see tierd --help)",
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
  return true;
}

bool Parser::take_keys() {
  if (!model.empty()) arguments.config.model = model;
  if (!tokenizer.empty()) arguments.config.tokenizer = tokenizer;
  if (!trace.empty()) arguments.config.trace = trace;
  if (!timeline.empty()) arguments.config.timeline = timeline;
  if (threads) arguments.config.threads = *threads;
  if (context) arguments.config.context = *context;
  if (batch) arguments.config.ubatch = std::min(arguments.config.ubatch, *batch);
  if (ubatch) arguments.config.ubatch = std::min(*ubatch, batch.value_or(*ubatch));
  if (!kv_keys.empty() && !kv_values.empty() && kv_keys != kv_values)
    return fail("--cache-type-k and --cache-type-v: expected the same encoding for both");
  if (!kv_keys.empty() || !kv_values.empty()) arguments.config.kv = kv_keys.empty() ? kv_values : kv_keys;
  if (sequences) arguments.config.sequences = *sequences;
  if (seed) arguments.config.seed = *seed;
  SpeculationConfig& speculation = arguments.config.speculation;
  if (most_guesses && (*most_guesses == 0 || *most_guesses > 63))
    return fail(fmt::format("--draft-max: {}, expected 1 to 63", *most_guesses));
  if (most_guesses) speculation.most = *most_guesses;
  // A flag replaces the [speculation] of the file.
  if (lookup || draft.given() || hub_draft.given())
    speculation.lookup = lookup, speculation.model = draft_model;
  return true;
}

bool Parser::take_sampling() {
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
  return true;
}

bool Parser::choose_mode() {
  const SpeculationConfig& speculation = arguments.config.speculation;
  arguments.prompt_given = prompt.given() || file.given();
  if (conversation && no_conversation)
    return fail("--conversation and --no-conversation: expected one of them");
  if (escapes && no_escapes) return fail("--escape and --no-escape: expected one of them");
  if (serve && arguments.prompt_given) return fail("serve: a server takes no prompt; leave out -p and -f");
  arguments.mode = mode_of(arguments, conversation, no_conversation,
                           serve || std::ranges::any_of(of_server, &Argument::given));
  if (arguments.mode == Mode::chat && arguments.json)
    return fail("--json: is not supported in a chat; set a prompt with -p");
  const bool guesses = speculation.guesses() || hub_draft.given();
  if (arguments.mode == Mode::chat && guesses && !arguments.check) {
    return fail(
        "--model-draft, --prompt-lookup and [speculation]: are not supported in a chat, only for one text "
        "(-p) and in the server");
  }
  if (arguments.serves() && arguments.json && !arguments.check)
    return fail("--json: is not supported in a server; set a prompt with -p, or use --check");
  return true;
}

bool Parser::read_files() {
  if (!key_file.empty()) {
    const Status keys = add_keys(key_file, arguments.api_keys);
    if (!keys.ok()) return fail(keys.error().line());
  }
  for (const std::string& key : arguments.api_keys) {
    if (key.empty()) return fail("--api-key: is empty, which would admit any client");
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
    if (stop.empty()) return fail("--reverse-prompt: is empty, expected a text");
  }
  return true;
}

}  // namespace

Parsed parse_arguments(int argc, char** argv) {
  Parser parser;
  parser.add_flags();
  (void)(parser.parse(argc, argv) && parser.take_config() && parser.take_model() && parser.take_keys() &&
         parser.take_sampling() && parser.choose_mode() && parser.read_files());
  return std::move(parser.parsed);
}

}  // namespace tierd
