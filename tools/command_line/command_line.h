// Command-line parsing: CLI11 behind a header that compiles quickly (CLI11's own costs every program a few
// seconds), and one way to report a wrong command line.
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

// An option, flag or positional argument, valid as long as its CommandLine. Copies refer to the same one.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument& named(const char* value);  // the name of its value in --help: FILE
  Argument& required();
  Argument& shows_default();
  Argument& or_variable(const char* name);  // the environment variable that is read if it is not given
  Argument& between(int least, int most);
  Argument& between(double least, double most);
  Argument& one_of(std::vector<std::string> words);
  Argument& excludes(const Argument& other);
  Argument& needs(const Argument& other);

  bool given() const;  // after parsing

 private:
  CLI::Option* option_;
};

// Returns the arguments of main(), without the program's name.
std::vector<std::string> words_of(int argc, char** argv);

// Variables that are bound to arguments must live until parse() has returned. Names as in "-m,--model";
// without dashes, a positional argument.
class CommandLine {
 public:
  CommandLine(const char* program, const char* description);
  ~CommandLine();

  void footer(std::function<std::string()> text);
  // Sets the text that --help prints; --help all prints everything.
  void brief(std::string text);
  // Returns whether an argument, as written ("-m", "--model"), is one of these and takes a value.
  bool takes_value(std::string_view name) const;

  Argument option(const char* names, std::string& value, const std::string& help);
  Argument option(const char* names, int64_t& value, const std::string& help);
  Argument option(const char* names, uint32_t& value, const std::string& help);
  Argument option(const char* names, uint64_t& value, const std::string& help);
  Argument option(const char* names, float& value, const std::string& help);
  Argument option(const char* names, double& value, const std::string& help);
  Argument option(const char* names, std::optional<uint32_t>& value, const std::string& help);
  Argument option(const char* names, std::optional<uint64_t>& value, const std::string& help);
  // May be given repeatedly, one value each time; a positional one takes all remaining words.
  Argument option(const char* names, std::vector<std::string>& values, const std::string& help);
  Argument flag(const char* names, bool& value, const std::string& help);

  // Adds a command, such as `tier-trace summary`, with its own arguments; the user must give one of the
  // commands. `chosen` is called if it is given. Lives as long as this.
  CommandLine& command(const char* name, const char* help, std::function<void()> chosen);

  // Sets the heading of the following options in --help.
  void group(const char* name);

  // Returns nothing, or the exit status: 0 after --help and --version, 2 after a line on standard error.
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
