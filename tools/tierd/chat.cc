#include "tools/tierd/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/base/time.h"
#include "tools/tierd/prompt_progress.h"
#include "tools/tierd/terminal_text.h"

namespace tierd {
namespace {

constexpr const char* kHelp =
    "/clear begins a new chat, /stats shows the report so far, /exit or Ctrl-D ends the chat. A line that "
    "ends in \\\ncontinues in the next one. Ctrl-C stops an answer; between answers it ends the chat.\n";

// Bytes of a line together with its continuation lines.
constexpr size_t kLongestLine = size_t{1} << 20;

std::atomic<Waiter*> the_answering{nullptr};

// Stops an answer. A read of a line ends with EINTR.
void on_interrupt(int) {
  if (Waiter* const waiter = the_answering.load()) waiter->stop();
}

void listen_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

nlohmann::ordered_json message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

}  // namespace

Chat::Chat(Runtime& runtime, RunEnergy& energy, const Tokenizer& tokenizer, std::optional<ChatTemplate> form,
           const Arguments& arguments)
    : runtime_(runtime),
      energy_(energy),
      tokenizer_(tokenizer),
      form_(std::move(form)),
      arguments_(arguments),
      sampler_(*Sampler::create(arguments.sampling)),
      session_(runtime.engine(), 0) {
  clear();
}

void Chat::clear() {
  session_.clear();
  messages_ = nlohmann::ordered_json::array();
  if (!arguments_.system_prompt.empty()) messages_.push_back(message("system", arguments_.system_prompt));
}

Status Chat::run() {
  listen_for_interrupts();
  if (!arguments_.quiet) {
    say(form_ ? fmt::format("chat ({}); /help lists commands", form_->name())
              : "this model has no chat template (set one with --chat-template NAME), so it continues "
                "your text as it is; /help lists commands");
  }
  result_.flash_before = runtime_.flash_counts();
  result_.used_before = used_counts(runtime_);
  result_.links_before = runtime_.links();
  if (arguments_.prompt_given) TIERD_TRY(answer(arguments_.prompt));
  if (arguments_.prompt_given && arguments_.single_turn) return {};
  for (std::string text;;) {
    TIERD_ASSIGN(const Line line, read(text));
    if (line == Line::over) return {};
    TIERD_ASSIGN(const bool more, take(text));
    if (!more) return {};
  }
}

Result<Chat::Line> Chat::read(std::string& text) {
  text.clear();
  const bool asks = ::isatty(STDIN_FILENO) != 0;
  for (;;) {
    if (asks) (void)write_output(text.empty() ? "\n> " : "  ");
    const size_t begin = text.size();
    int next = EOF;
    while ((next = std::getc(stdin)) != EOF && next != '\n') {
      text += static_cast<char>(next);
      if (text.size() <= kLongestLine) continue;
      return Error{Code::invalid_argument, "chat",
                   fmt::format("a line has more than {} bytes; end it earlier", kLongestLine)};
    }
    if (next == EOF && text.size() == begin) return text.empty() ? Line::over : Line::text;
    while (text.size() > begin && text.back() == '\r') text.pop_back();
    if (!text.ends_with("\\")) return Line::text;
    text.back() = '\n';
  }
}

Result<bool> Chat::take(const std::string& text) {
  if (text.empty()) return true;
  if (text == "/exit" || text == "/quit") return false;
  if (text == "/clear") {
    clear();
  } else if (text == "/stats") {
    energy_.look_now(progress_of(runtime_, result_));
    result_.energy = energy_.totals();
    std::fputs(report_text(run_figures(runtime_, result_)).c_str(), stderr);
  } else if (text == "/help" || (text.front() == '/' && text.find(' ') == std::string::npos)) {
    std::fputs(kHelp, stderr);
  } else {
    TIERD_TRY(answer(text));
    return !arguments_.single_turn;
  }
  return true;
}

Result<std::vector<uint32_t>> Chat::tokens_with(const std::string& text) const {
  if (!form_) {
    std::vector<uint32_t> tokens(session_.tokens().begin(), session_.tokens().end());
    const std::vector<uint32_t> more = tokenizer_.encode(text, tokens.empty(), true);
    tokens.insert(tokens.end(), more.begin(), more.end());
    return tokens;
  }
  TIERD_ASSIGN(const std::string chat, form_->apply({messages_}));
  return tokenizer_.encode(chat, true, true);
}

Status Chat::answer(const std::string& text) {
  messages_.push_back(message("user", text));
  auto tokens = tokens_with(text);
  if (!tokens.ok()) {
    messages_.erase(messages_.size() - 1);
    return tokens.error();
  }
  const uint32_t context = runtime_.engine().context();
  if (tokens->size() >= context) {
    messages_.erase(messages_.size() - 1);
    say(
        fmt::format("the chat takes {} tokens, but the context has {}; begin a new chat with /clear, or set "
                    "a longer context with -c",
                    tokens->size(), context));
    return {};
  }
  std::string said;
  Waiter& waiter = runtime_.waiter();
  the_answering.store(&waiter);
  Status status = generate(std::move(*tokens), said);
  the_answering.store(nullptr);
  if (status.code() == Code::cancelled || waiter.stopping()) {
    waiter.clear_stop();
    status = runtime_.engine().drain();
    said += said.empty() ? "" : " ";
  }
  (void)write_output("\n");
  messages_.push_back(message("assistant", said));
  return status;
}

Status Chat::generate(std::vector<uint32_t> tokens, std::string& said) {
  // The common beginning stays in the KV cache. The last token is computed again for its logits.
  const auto [known, unused] = std::ranges::mismatch(session_.tokens(), tokens);
  const auto common =
      std::min<size_t>(static_cast<size_t>(known - session_.tokens().begin()), tokens.size() - 1);
  session_.truncate(common);
  const std::span<const uint32_t> rest = std::span(tokens).subspan(common);
  for (const uint32_t token : rest) sampler_.accept(token);
  result_.prompt_tokens += rest.size();
  const uint64_t begin = now_ns();
  TIERD_ASSIGN(std::span<const float> logits, append_prompt(session_, rest, arguments_.quiet));
  result_.first_token_ns = now_ns() - begin;
  const Vocab& vocab = tokenizer_.vocab();
  TerminalText shown(tokenizer_, arguments_.special, arguments_.stops);
  const auto show = [&](const std::string& text) {
    said += text;
    return write_output(text);
  };
  for (int64_t left = arguments_.predict; left != 0 && session_.position() < runtime_.engine().context();
       --left) {
    TIERD_ASSIGN(const uint32_t token, sampler_.sample(logits));
    const bool ends = std::ranges::find(vocab.end_tokens, token) != vocab.end_tokens.end();
    if (ends && !arguments_.ignore_eos) {
      TIERD_TRY(show(shown.add_end(token)));
      break;
    }
    TIERD_TRY(show(shown.add(token)));
    ++result_.generated_tokens;
    if (shown.stopped()) break;
    TIERD_ASSIGN(logits, session_.append({&token, 1}));
  }
  return show(shown.finish());
}

}  // namespace tierd
