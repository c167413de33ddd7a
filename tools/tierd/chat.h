// A chat on the terminal: the user's lines, and what the model answers.
#pragma once

#include <atomic>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/engine/session.h"
#include "core/model/sampling/sampler.h"
#include "core/model/text/chat_template.h"
#include "core/model/text/tokenizer.h"
#include "core/run/run_energy.h"
#include "core/run/runtime.h"
#include "tools/tierd/arguments.h"
#include "tools/tierd/report.h"

namespace tierd {

class Chat {
 public:
  // Everything outlives the chat. `form`: that of its turns; none: what the user writes is continued as it
  // is.
  Chat(Runtime& runtime, RunEnergy& energy, const Tokenizer& tokenizer, std::optional<ChatTemplate> form,
       const Arguments& arguments);

  // Reads standard input to its end, to /exit, or until SIGINT finds nobody answering. While the model
  // answers, SIGINT ends the answer alone. Error: that of the engine, of a turn that could not be taken.
  Status run();

  RunResult& result() { return result_; }

 private:
  enum class Line : uint8_t { text, over };
  // Reads a line, and those that it goes on in after a \ at its end. Error: invalid_argument, where they are
  // longer than any chat.
  Result<Line> read(std::string& text);
  // False: the chat is over.
  Result<bool> take(const std::string& text);
  Status answer(const std::string& text);
  // What the model has to read: all that was said, in the chat's form.
  Result<std::vector<uint32_t>> tokens_with(const std::string& text) const;
  // Until the model ends its turn; what it says is printed, and added to `said`.
  Status generate(std::vector<uint32_t> tokens, std::string& said);
  void clear();

  Runtime& runtime_;
  RunEnergy& energy_;
  const Tokenizer& tokenizer_;
  std::optional<ChatTemplate> form_;
  const Arguments& arguments_;
  Sampler sampler_;
  Session session_;
  std::vector<ChatMessage> messages_;
  RunResult result_;
};

}  // namespace tierd
