// A chat on the terminal: reads the user's lines and prints the model's answers.
#pragma once

#include <csignal>
#include <nlohmann/json.hpp>
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
  // All arguments must outlive the chat. `form`: the form of its turns; none: the model continues the user's
  // text as it is.
  Chat(Runtime& runtime, RunEnergy& energy, const Tokenizer& tokenizer, std::optional<ChatTemplate> form,
       const Arguments& arguments);

  // Reads standard input to its end, to /exit, or to a SIGINT while no answer is generated. A SIGINT during
  // an answer ends the answer alone. Error: that of the engine, of a turn that failed.
  Status run();

  RunResult& result() { return result_; }

 private:
  enum class Line : uint8_t { text, over };
  // Reads a line, and the lines that follow one that ends in a \. Error: invalid_argument for lines longer
  // than kLongestLine in all.
  Result<Line> read(std::string& text);
  // Executes a command or answers a text. Returns false where the chat ends.
  Result<bool> take(const std::string& text);
  Status answer(const std::string& text);
  // Returns the tokens of the whole chat with `text`, in the chat's form.
  Result<std::vector<uint32_t>> tokens_with(const std::string& text) const;
  // Generates until the model ends its turn. Prints the text and appends it to `said`.
  Status generate(std::vector<uint32_t> tokens, std::string& said);
  void clear();

  Runtime& runtime_;
  RunEnergy& energy_;
  const Tokenizer& tokenizer_;
  std::optional<ChatTemplate> form_;
  const Arguments& arguments_;
  Sampler sampler_;
  Session session_;
  nlohmann::ordered_json messages_;  // a list
  RunResult result_;
};

}  // namespace tierd
