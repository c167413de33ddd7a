#include "tools/tierd/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/standard_streams.h"
#include "core/base/time.h"
#include "core/engine/drafter.h"
#include "core/engine/session.h"
#include "core/model/sampling/sampler.h"
#include "core/report/figure_json.h"
#include "core/run/prepare_run.h"
#include "core/run/run_energy.h"
#include "tools/command_line/exit_code.h"
#include "tools/tierd/chat.h"
#include "tools/tierd/chat_form.h"
#include "tools/tierd/drafters.h"
#include "tools/tierd/plugin_watch.h"
#include "tools/tierd/prompt_progress.h"
#include "tools/tierd/report.h"
#include "tools/tierd/terminal_text.h"

namespace tierd {
namespace {

std::atomic<Waiter*> the_waiter{nullptr};
std::atomic<int> the_signal{0};

// The first signal ends the run in order. A second signal ends the process, and so does the alarm one second
// later that --help documents: standard output or the disk may block, or a matrix is large.
void on_signal(int number) {
  the_signal.store(number);
  if (Waiter* waiter = the_waiter.load()) waiter->stop();
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGALRM, [](int) { std::raise(the_signal.load()); });
  alarm(1);
}

class TerminalRun {
 public:
  // `drafter` NULL: no token is guessed.
  TerminalRun(Runtime& runtime, RunEnergy& energy, const Tokenizer& tokenizer, Drafter* drafter,
              const Arguments& arguments)
      : runtime_(runtime),
        energy_(energy),
        tokenizer_(tokenizer),
        sampler_(*Sampler::create(arguments.sampling)),
        drafter_(drafter),
        arguments_(arguments),
        shown_(tokenizer, arguments.special, arguments.stops),
        session_(runtime.engine(), 0),
        left_(arguments.predict < 0 ? INT64_MAX : arguments.predict) {}

  Status run() {
    const Status status = generate();
    const Status shown = emit(shown_.finish());
    return status.ok() ? shown : status;
  }

  const RunResult& result() const { return result_; }
  RunResult& result() { return result_; }
  const std::string& text() const { return text_; }

 private:
  Status generate() {
    std::vector<uint32_t> prompt = tokenizer_.encode(arguments_.prompt, true, true);
    const Vocab& vocab = tokenizer_.vocab();
    if (prompt.empty()) {
      if (vocab.bos == kNoToken)
        return Error{Code::invalid_argument, "prompt", "is empty, but the model has no BOS token"};
      prompt.push_back(vocab.bos);
    }
    result_.prompt_tokens = prompt.size();
    // The space that a tokenizer puts before the first word is not printed at the beginning of a document.
    at_start_ = arguments_.prompt.empty() && tokenizer_.drops_first_space();

    for (const uint32_t token : prompt) sampler_.accept(token);
    const uint64_t begin = now_ns();
    TIERD_ASSIGN(const std::span<const float> logits, append_prompt(session_, prompt, arguments_.quiet));
    if (left_ == 0) return {};
    TIERD_ASSIGN(uint32_t token, sampler_.sample(logits));
    result_.first_token_ns = now_ns() - begin;
    result_.flash_before = runtime_.flash_counts();
    result_.used_before = used_counts(runtime_);
    result_.links_before = runtime_.links();
    TIERD_ASSIGN(bool more, take(token));
    energy_.look_now(progress_of(runtime_, result_));
    const uint64_t decode_begin = now_ns();
    while (more && session_.position() < runtime_.engine().context()) {
      TIERD_ASSIGN(const std::vector<uint32_t> tokens, with_guesses(token));
      // Every token is sampled from the same logits in the same order as one by one: guesses change when a
      // token is computed, not which token it is.
      Status status;
      const uint64_t read_before = runtime_.scheduler().counters().read_bytes;
      const auto checked = session_.append_guesses(tokens, [&](size_t i, std::span<const float> after) {
        auto sampled = sampler_.sample(after);
        if (!sampled.ok()) status = sampled.error();
        if (!status.ok()) return false;
        token = *sampled;
        auto taken = take(token);
        if (!taken.ok()) status = taken.error();
        more = taken.ok() && *taken;
        return more && i + 1 < tokens.size() && tokens[i + 1] == token;
      });
      TIERD_TRY(status);
      if (!checked.ok()) return checked.error();
      result_.decode_read_bytes.push_back(runtime_.scheduler().counters().read_bytes - read_before);
      if (result_.decode_read_bytes.size() == kWarmUpSteps) result_.links_warm = runtime_.links();
      result_.guessed_tokens += tokens.size() - 1;
      result_.right_guesses += *checked - 1;
      result_.decoded_tokens = result_.generated_tokens - 1;
      result_.decode_ns = now_ns() - decode_begin;
    }
    return {};
  }
  // Prints the next token. Returns false after the last one.
  Result<bool> take(uint32_t token) {
    const Vocab& vocab = tokenizer_.vocab();
    const bool ends =
        std::find(vocab.end_tokens.begin(), vocab.end_tokens.end(), token) != vocab.end_tokens.end();
    if (ends && !arguments_.ignore_eos) {
      TIERD_TRY(emit(shown_.add_end(token)));
      return false;
    }
    ++result_.generated_tokens;
    --left_;
    TIERD_TRY(emit(shown_.add(token)));
    return left_ != 0 && !shown_.stopped();
  }
  // Returns the token, followed by guesses.
  Result<std::vector<uint32_t>> with_guesses(uint32_t token) {
    std::vector<uint32_t> tokens = {token};
    if (drafter_ == nullptr) return tokens;
    const uint64_t room = runtime_.engine().context() - session_.position() - 1;
    const uint64_t most =
        std::min<uint64_t>({arguments_.config.speculation.most, room, static_cast<uint64_t>(left_)});
    std::vector<uint32_t> said(session_.tokens().begin(), session_.tokens().end());
    said.push_back(token);
    TIERD_ASSIGN(const std::vector<uint32_t> guesses, drafter_->draft(said, most));
    tokens.insert(tokens.end(), guesses.begin(), guesses.end());
    return tokens;
  }
  Status emit(std::string piece) {
    if (at_start_ && piece.starts_with(' ')) piece.erase(0, 1);
    at_start_ = at_start_ && piece.empty();
    text_ += piece;
    return arguments_.json ? Status() : write_output(piece);
  }

  Runtime& runtime_;
  RunEnergy& energy_;
  const Tokenizer& tokenizer_;
  Sampler sampler_;
  Drafter* drafter_;
  const Arguments& arguments_;
  TerminalText shown_;
  Session session_;
  int64_t left_;  // tokens to generate
  bool at_start_ = false;
  RunResult result_;
  std::string text_;
};

}  // namespace

int run_on_terminal(const Arguments& arguments, Reload& reload, RunPlan plan, RuntimeOptions options,
                    const Tokenizer& tokenizer, const std::optional<KnownLoss>& loss) {
  const auto drafters = start_drafters(plan, 1, arguments.quiet);
  if (!drafters.ok()) return fail(drafters.error(), exit_code(drafters.error()));
  Drafter* const drafter = drafters->each.empty() ? nullptr : drafters->each.front().get();
  auto recoded = recoding_figures(plan);
  if (!recoded.ok()) return fail(recoded.error(), exit_code(recoded.error()));
  PluginCalls calls;
  options.running_plugins = &calls;
  const PluginWatch plugins(calls, uint64_t{arguments.config.plugin_deadline_ms} * 1'000'000, "run",
                            [](const std::string&) {});
  auto created = Runtime::create(std::move(plan), options);
  if (!created.ok()) return fail(created.error(), exit_code(created.error()));
  Runtime& runtime = **created;
  runtime.go_on_without_lost_agents();
  const auto relief = PressureRelief::create(runtime, arguments.quiet);
  if (!relief.ok()) return fail(relief.error(), kBadInput);
  the_waiter.store(&runtime.waiter());
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  const uint64_t disk_bytes_before = system_read_bytes();
  RunEnergy energy(runtime);
  const uint64_t begin = now_ns();
  Status status = runtime.load();
  const uint64_t load_ns = now_ns() - begin;
  energy.loaded();
  if (!status.ok() && the_signal.load() == 0) {
    the_waiter.store(nullptr);
    return fail(status.error(), exit_code(status.error()));
  }
  TerminalRun run(runtime, energy, tokenizer, drafter, arguments);
  std::optional<Chat> chat;
  if (arguments.mode == Mode::chat) {
    auto form = chat_form(arguments, tokenizer.vocab());
    chat.emplace(runtime, energy, tokenizer, form.ok() ? std::optional(std::move(*form)) : std::nullopt,
                 arguments);
  }
  RunResult& result = chat ? chat->result() : run.result();
  runtime.engine().set_between_steps([&] {
    reload.look(runtime);
    if (*relief != nullptr) (*relief)->look(now_ns());
    energy.look(progress_of(runtime, result));
  });
  if (status.ok()) status = chat ? chat->run() : run.run();
  energy.look_now(progress_of(runtime, result));
  result.energy = energy.totals();
  result.load_ns = load_ns;
  result.disk_bytes_before = disk_bytes_before;
  if (*relief != nullptr) result.pressure = (*relief)->counts();
  Status drained = runtime.engine().drain();
  if (const Status recorded = runtime.end_recording(); drained.ok()) drained = recorded;
  the_waiter.store(nullptr);

  RunFigures figures = run_figures(runtime, result);
  figures.recoded = *std::move(recoded);
  figures.loss = loss;
  if (status.ok()) figures.forecast = forecast_figures(runtime, figures);
  if (arguments.json) {
    // Incomplete characters of a byte-level model are replaced, so that the object is valid JSON.
    const nlohmann::json object = {{"text", run.text()}, {"report", figures_json(figures)}};
    const std::string text = object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (const Status written = write_output(text); !written.ok() && status.ok()) status = written;
  } else if (isatty(STDOUT_FILENO) != 0) {
    (void)write_output("\n");  // the next shell prompt begins a line; a file gets the text alone
  }
  if (!arguments.json && !arguments.quiet) std::fprintf(stderr, "\n%s", report_text(figures).c_str());
  if (const int number = the_signal.load(); number != 0) return 128 + number;
  if (!status.ok()) return fail(status.error(), exit_code(status.error()));
  if (!drained.ok()) return fail(drained.error(), kFailed);
  return 0;
}

}  // namespace tierd
