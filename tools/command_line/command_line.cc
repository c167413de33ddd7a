#include "tools/command_line/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/base/log.h"
#include "tools/command_line/exit_code.h"

namespace tierd {
namespace {

constexpr size_t kHelpColumn = 34;

}  // namespace

Argument& Argument::or_variable(const char* name) {
  option_->envname(name);
  return *this;
}

Argument& Argument::named(const char* value) {
  option_->type_name(value);
  return *this;
}
Argument& Argument::required() {
  option_->required();
  return *this;
}
Argument& Argument::shows_default() {
  option_->capture_default_str();
  return *this;
}
Argument& Argument::between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Argument& Argument::between(double least, double most) {
  option_->check(CLI::Range(least, most));
  // The range admits "nan", which compares as neither below nor above.
  option_->check([](const std::string& text) {
    return std::isnan(std::strtod(text.c_str(), nullptr)) ? "Value " + text + " is not a number"
                                                          : std::string();
  });
  return *this;
}
Argument& Argument::one_of(std::vector<std::string> words) {
  option_->check(CLI::IsMember(std::move(words)));
  return *this;
}
Argument& Argument::excludes(const Argument& other) {
  option_->excludes(other.option_);
  return *this;
}
Argument& Argument::needs(const Argument& other) {
  option_->needs(other.option_);
  return *this;
}
bool Argument::given() const {
  return option_->count() > 0;
}

std::vector<std::string> words_of(int argc, char** argv) {
  return {argv + std::min(argc, 1), argv + argc};
}

CommandLine::CommandLine(const char* program, const char* description)
    : CommandLine(std::make_shared<CLI::App>(description, program)) {
  app_->get_formatter()->column_width(kHelpColumn);
  app_->set_version_flag("--version", std::string(program) + " " TIERD_VERSION);
}
CommandLine::CommandLine(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}
CommandLine::~CommandLine() = default;

void CommandLine::brief(std::string text) {
  brief_ = std::move(text);
}
void CommandLine::group(const char* name) {
  app_->option_defaults()->group(name);
}
bool CommandLine::takes_value(std::string_view name) const {
  const CLI::Option* const option = app_->get_option_no_throw(std::string(name));
  return option != nullptr && option->get_items_expected_max() > 0;
}
void CommandLine::footer(std::function<std::string()> text) {
  app_->footer(std::move(text));
}

template <class T>
Argument CommandLine::add(const char* names, T& value, const std::string& help) {
  return Argument(app_->add_option(names, value, help));
}
Argument CommandLine::option(const char* names, std::string& value, const std::string& help) {
  return add(names, value, help);
}
Argument CommandLine::option(const char* names, int64_t& value, const std::string& help) {
  return add(names, value, help);
}
Argument CommandLine::option(const char* names, uint32_t& value, const std::string& help) {
  return add(names, value, help);
}
Argument CommandLine::option(const char* names, uint64_t& value, const std::string& help) {
  return add(names, value, help);
}
Argument CommandLine::option(const char* names, float& value, const std::string& help) {
  return add(names, value, help);
}
Argument CommandLine::option(const char* names, double& value, const std::string& help) {
  return add(names, value, help);
}
Argument CommandLine::option(const char* names, std::optional<uint32_t>& value, const std::string& help) {
  return add(names, value, help);
}
Argument CommandLine::option(const char* names, std::optional<uint64_t>& value, const std::string& help) {
  return add(names, value, help);
}
Argument CommandLine::option(const char* names, std::vector<std::string>& values, const std::string& help) {
  CLI::Option* const option = app_->add_option(names, values, help);
  if (!option->get_positional()) option->allow_extra_args(false);
  return Argument(option);
}
Argument CommandLine::flag(const char* names, bool& value, const std::string& help) {
  return Argument(app_->add_flag(names, value, help));
}

CommandLine& CommandLine::command(const char* name, const char* help, std::function<void()> chosen) {
  app_->require_subcommand(1);
  CLI::App* const app = app_->add_subcommand(name, help);
  app->callback(std::move(chosen));
  return *commands_.emplace_back(new CommandLine(app_->get_subcommand_ptr(app)));
}

std::optional<int> CommandLine::parse(std::vector<std::string> words) {
  const auto asks =
      std::ranges::find_if(words, [](const std::string& w) { return w == "-h" || w == "--help"; });
  if (asks != words.end() && !brief_.empty()) {
    if (asks + 1 == words.end() || *(asks + 1) != "all") {
      std::fputs(brief_.c_str(), stdout);
      return 0;
    }
    words.erase(asks + 1);
  }
  std::reverse(words.begin(), words.end());  // the order that CLI11 expects
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& help) {
    return app_->exit(help);
  } catch (const CLI::ParseError& error) {
    const std::string& program = app_->get_name();
    say(program + ": " + error.what() + " (see " + program + " --help)");
    return kBadInput;
  }
  return std::nullopt;
}

}  // namespace tierd
