// tierd: one run on the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "core/base/standard_streams.h"
#include "core/base/time.h"
#include "core/engine/session.h"
#include "core/host/agent_file.h"
#include "core/host/plugin_file.h"
#include "core/host/plugin_manual.h"
#include "core/text/tokenizer.h"
#include "tools/assembly/runtime.h"
#include "tools/command_line/exit_code.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/report.h"

namespace tierd {
namespace {

std::atomic<Waiter*> the_waiter{nullptr};
std::atomic<int> the_signal{0};

// The first signal ends the run in order. A second one ends the process, and so does the end of the second
// that --help promises: whoever reads the text may have stopped, or the disk, or a matrix is large.
void on_signal(int number) {
  the_signal.store(number);
  if (Waiter* waiter = the_waiter.load()) waiter->stop();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGALRM, [](int) { std::raise(the_signal.load()); });
  alarm(1);
}

int fail(const Error& error, int code) {
  say(error.line());
  return code;
}

class Generation {
 public:
  Generation(Runtime& runtime, const Tokenizer& tokenizer, Sampler sampler, const Arguments& arguments)
      : runtime_(runtime),
        tokenizer_(tokenizer),
        sampler_(std::move(sampler)),
        arguments_(arguments),
        session_(runtime.engine(), 0) {}

  Status run() {
    std::vector<uint32_t> prompt = tokenizer_.encode(arguments_.prompt, true, true);
    const Vocab& vocab = tokenizer_.vocab();
    if (prompt.empty()) {
      if (vocab.bos == kNoToken)
        return Error{Code::invalid_argument, "prompt", "is empty and the model has no BOS token"};
      prompt.push_back(vocab.bos);
    }
    result_.prompt_tokens = prompt.size();
    // sentencepiece puts a space before the first word; text that begins a document does without.
    bool at_start =
        arguments_.prompt.empty() && vocab.kind == VocabKind::sentencepiece_bpe && vocab.add_space_prefix;

    const uint64_t begin = now_ns();
    auto logits = session_.append(prompt);
    const int64_t most = arguments_.predict < 0 ? INT64_MAX : arguments_.predict;
    for (int64_t n = 0; n < most; ++n) {
      if (!logits.ok()) return logits.error();
      TIERD_ASSIGN(const uint32_t token, sampler_.sample(*logits));
      if (n == 0) {
        result_.first_token_ns = now_ns() - begin;
        result_.flash_before_ns = runtime_.flash_counts().in_flight_ns;
      }
      const bool ends =
          std::find(vocab.end_tokens.begin(), vocab.end_tokens.end(), token) != vocab.end_tokens.end();
      if (ends && !arguments_.ignore_eos) break;
      ++result_.generated_tokens;
      std::string piece = tokenizer_.piece(token, arguments_.special);
      if (at_start && !piece.empty() && piece.front() == ' ') piece.erase(0, 1);
      at_start = at_start && piece.empty();
      TIERD_TRY(emit(piece));
      if (n + 1 == most || session_.position() == runtime_.engine().context()) break;
      logits = session_.append({&token, 1});
    }
    if (!logits.ok()) return logits.error();
    return {};
  }

  const RunResult& result() const { return result_; }
  RunResult& result() { return result_; }
  const std::string& text() const { return text_; }

 private:
  Status emit(const std::string& piece) {
    text_ += piece;
    return arguments_.json ? Status() : write_output(piece);
  }

  Runtime& runtime_;
  const Tokenizer& tokenizer_;
  Sampler sampler_;
  const Arguments& arguments_;
  Session session_;
  RunResult result_;
  std::string text_;
};

Result<std::string> manual_of(const PluginPath::Found& found) {
  if (found.kind == "agent") {
    TIERD_ASSIGN(const AgentEntry* const entry, load_agent(found.path, found.name));
    return agent_manual(*entry, found.path);
  }
  TIERD_ASSIGN(const tierd_plugin* const plugin, load_plugin(found.path, found.kind, found.name));
  return plugin_manual(*plugin, found.path);
}

// The manual of every plugin of that name.
int print_manuals(const Arguments& arguments) {
  const PluginPath path = plugin_path(arguments.config);
  std::string text;
  std::vector<std::string_view> known;
  const std::vector<PluginPath::Found> all = path.list();
  for (const PluginPath::Found& found : all) {
    known.push_back(found.name);
    if (arguments.plugin != found.name && arguments.plugin != found.kind + "-" + found.name) continue;
    const auto manual = manual_of(found);
    if (!manual.ok()) return fail(manual.error(), kBadInput);
    text += (text.empty() ? "" : "\n") + *manual;
  }
  if (text.empty()) {
    const std::string_view meant = nearest(arguments.plugin, known);
    return fail({Code::not_found, "--plugin",
                 fmt::format("there is no plugin '{}'{}; --plugins lists them", arguments.plugin,
                             meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant))},
                kBadInput);
  }
  const Status written = write_output(text);
  return written.ok() ? 0 : fail(written.error(), kFailed);
}

int run(const Arguments& arguments) {
  if (arguments.list_plugins) {
    const Status written = write_output(plugin_list(plugin_path(arguments.config)));
    return written.ok() ? 0 : fail(written.error(), kFailed);
  }
  if (!arguments.plugin.empty()) return print_manuals(arguments);
  RuntimeOptions options;
  options.fit = arguments.fit;
  options.quiet = arguments.quiet;
  auto sampler = Sampler::create(arguments.sampling);
  if (!sampler.ok()) return fail(sampler.error(), kBadInput);
  auto plan = plan_run(arguments.config, options);
  if (!plan.ok()) return fail(plan.error(), kBadInput);
  const Manifest& manifest = plan->store.manifest();
  if (!manifest.has_vocab && !arguments.check) {
    return fail({Code::not_found, plan->store.directory(),
                 "the model brings no tokenizer; name one with --tokenizer"},
                kBadInput);
  }
  std::unique_ptr<Tokenizer> tokenizer;
  if (manifest.has_vocab) {
    auto made = make_tokenizer(manifest.vocab, plan->store.directory());
    if (!made.ok()) return fail(made.error(), kBadInput);
    tokenizer = std::move(*made);
  }
  auto created = Runtime::create(std::move(*plan), options);
  if (!created.ok()) return fail(created.error(), exit_code(created.error()));
  Runtime& runtime = **created;
  if (arguments.check) {
    const auto check = check_json(runtime);
    if (!check.ok()) return fail(check.error(), kFailed);
    const Status written = write_output(arguments.json ? check->dump(2) + "\n" : check_text(*check));
    return written.ok() ? 0 : fail(written.error(), kFailed);
  }
  the_waiter.store(&runtime.dispatcher().waiter());
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  const uint64_t begin = now_ns();
  Status status = runtime.load();
  const uint64_t load_ns = now_ns() - begin;
  if (!status.ok() && the_signal.load() == 0) {
    the_waiter.store(nullptr);
    return fail(status.error(), exit_code(status.error()));
  }
  Generation generation(runtime, *tokenizer, std::move(*sampler), arguments);
  if (status.ok()) status = generation.run();
  generation.result().load_ns = load_ns;
  Status drained = runtime.engine().drain();
  if (const Status traced = runtime.end_trace(); drained.ok()) drained = traced;
  the_waiter.store(nullptr);

  nlohmann::json report = report_json(runtime, generation.result());
  if (arguments.json) {
    // What a byte-level model cuts in the middle of a character is replaced, so that the object stays valid.
    const nlohmann::json object = {{"text", generation.text()}, {"report", report}};
    const std::string text = object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (const Status written = write_output(text); !written.ok() && status.ok()) status = written;
  } else if (isatty(STDOUT_FILENO) != 0) {
    (void)write_output("\n");  // the prompt that comes next begins a line; a file gets the text alone
  }
  if (!arguments.json && !arguments.quiet) std::fprintf(stderr, "\n%s", report_text(report).c_str());
  if (const int number = the_signal.load(); number != 0) return 128 + number;
  if (!status.ok()) return fail(status.error(), exit_code(status.error()));
  if (!drained.ok()) return fail(drained.error(), kFailed);
  return 0;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  const tierd::Parsed parsed = tierd::parse_arguments(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  return tierd::run(parsed.arguments);
}
