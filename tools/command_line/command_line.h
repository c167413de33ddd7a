// The command line of a program: CLI11 behind a header that compiles at once (its own costs every program
// some seconds), and one way to say that a command line is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tierd {

// One option, flag or positional argument, for as long as its CommandLine lives. Copies are the same one.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument& named(const char* value);  // what --help calls its value: FILE
  Argument& required();
  Argument& shows_default();
  Argument& or_variable(const char* name);  // of the environment, where it is not given
  Argument& between(int least, int most);
  Argument& between(double least, double most);
  Argument& one_of(std::vector<std::string> words);
  Argument& excludes(const Argument& other);
  Argument& needs(const Argument& other);

  bool given() const;  // once parsed

 private:
  CLI::Option* option_;
};

// What main() got, without the program's name.
std::vector<std::string> words_of(int argc, char** argv);

// What is bound to an argument must live until parse has returned. Names as in "-m,--model"; without dashes,
// a positional argument.
class CommandLine {
 public:
  CommandLine(const char* program, const char* description);
  ~CommandLine();

  void footer(std::function<std::string()> text);
  // What --help prints then; --help all prints everything.
  void brief(std::string text);
  // Whether a flag, as it is written ("-m", "--model"), is one of these and has a value.
  bool takes_value(std::string_view name) const;

  Argument option(const char* names, std::string& value, const std::string& help);
  Argument option(const char* names, int64_t& value, const std::string& help);
  Argument option(const char* names, uint32_t& value, const std::string& help);
  Argument option(const char* names, uint64_t& value, const std::string& help);
  Argument option(const char* names, float& value, const std::string& help);
  Argument option(const char* names, double& value, const std::string& help);
  Argument option(const char* names, std::optional<uint32_t>& value, const std::string& help);
  Argument option(const char* names, std::optional<uint64_t>& value, const std::string& help);
  // May be given more than once, one value each time; a positional one takes all that are left.
  Argument option(const char* names, std::vector<std::string>& values, const std::string& help);
  Argument flag(const char* names, bool& value, const std::string& help);

  // A command of its own, such as `tier-trace summary`, with arguments of its own; one of them has to be
  // given. `chosen` is called when it is. Lives as long as this.
  CommandLine& command(const char* name, const char* help, std::function<void()> chosen);

  // The heading that the options below it have in --help.
  void group(const char* name);

  // Nothing, or the status to leave with: 0 after --help and --version, 2 after a line on standard error that
  // says what is wrong.
  std::optional<int> parse(int argc, char** argv) { return parse(words_of(argc, argv)); }
  std::optional<int> parse(std::vector<std::string> words);

 private:
  explicit CommandLine(std::shared_ptr<CLI::App> app);
  template <class T>
  Argument add(const char* names, T& value, const std::string& help);

  std::shared_ptr<CLI::App> app_;
  std::vector<std::unique_ptr<CommandLine>> commands_;
  std::string brief_;
};

}  // namespace tierd
