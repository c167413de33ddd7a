#include "tools/command_line/moved.h"

#include "core/base/log.h"
#include "tools/command_line/exit_code.h"

namespace tierd {
namespace {

// Returns the word as a shell reads it back, quoted only where that is necessary.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+%@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

int refuse_moved(std::string_view program, std::string_view what, const std::vector<std::string>& command) {
  std::string line = std::string(program) + ": " + std::string(what) + " is another command now:";
  for (const std::string& word : command) line += " " + shell_word(word);
  say(line);
  return kBadInput;
}

std::string_view find_option(const std::vector<std::string>& words,
                             const std::vector<std::string_view>& options) {
  for (const std::string_view option : options) {
    for (const std::string& word : words) {
      if (word.starts_with(option) && (word.size() == option.size() || word[option.size()] == '='))
        return option;
    }
  }
  return "";
}

}  // namespace tierd
