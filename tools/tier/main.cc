// tier: executes `tier-VERB`, which is a program of its own, and lists those that are installed.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/base/nearest.h"
#include "core/base/standard_streams.h"
#include "tools/command_line/exit_code.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "tier-";

struct Verb {
  std::string_view name;
  std::string_view purpose;
};
constexpr Verb kProduct[] = {
    {"bench", "measures prefill and decode beside the machine's limit"},
    {"calibrate", "measures this machine's disk, memory and cores"},
    {"compare", "measures what a configuration loses on a text"},
    {"conform", "checks a plugin or an agent against the rules of its kind"},
    {"convert", "converts a model into a store or a GGUF file; verifies a store"},
    {"store", "lists, verifies and removes converted models of the cache folder"},
    {"tokenize", "converts a text into token ids, and ids into text"},
    {"trace", "shows and replays traces of runs"},
};
constexpr Verb kLaboratory[] = {
    {"activity", "draws active neurons, or shows those of a recorded trace"},
    {"partition", "divides neurons between a GPU and memory that computes"},
    {"plan", "finds sparsity, layer group, mask and cache for a budget"},
    {"profile", "records which neurons fire on a text, and how large inputs are"},
    {"prune", "sets a share of a model's weights to zero, or smooths outliers"},
    {"reproduce", "compares published figures with runs in virtual time"},
    {"sweep", "measures at several values of a configuration's keys, and draws a picture"},
    {"synth", "makes a model of a given shape with random weights"},
    {"train", "trains predictors and gates, and distils models"},
};

// Returns the folder of this program and those of PATH, in the order of search. An empty entry of PATH, which
// a shell takes for the working directory, is left out.
std::vector<fs::path> folders() {
  std::vector<fs::path> all;
  std::error_code error;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error)
    all.push_back(self.parent_path());
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), entry.size() + 1));
    if (!entry.empty()) all.emplace_back(entry);
  }
  return all;
}

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// Returns the path of `tier-VERB`, or an empty one.
fs::path find_verb(std::string_view verb) {
  if (verb.empty() || verb.find('/') != std::string_view::npos) return {};
  for (const fs::path& folder : folders()) {
    fs::path path = folder / fmt::format("{}{}", kPrefix, verb);
    if (is_program(path)) return path;
  }
  return {};
}

std::set<std::string> installed_verbs() {
  std::set<std::string> verbs;
  for (const fs::path& folder : folders()) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().filename();
      if (name.starts_with(kPrefix) && name.size() > kPrefix.size() && is_program(entry->path()))
        verbs.insert(name.substr(kPrefix.size()));
    }
  }
  return verbs;
}

// Removes the verbs that it describes from `verbs`.
template <size_t N>
std::string section(const char* title, const Verb (&known)[N], std::set<std::string>& verbs) {
  std::string text;
  for (const Verb& verb : known) {
    if (verbs.erase(std::string(verb.name)) > 0) text += fmt::format("  {:<12}{}\n", verb.name, verb.purpose);
  }
  return text.empty() ? text : fmt::format("\n{}\n{}", title, text);
}

std::string help_text() {
  std::set<std::string> verbs = installed_verbs();
  std::string text =
      "Usage: tier VERB ARGUMENTS...     executes tier-VERB, beside tier or in PATH\n"
      "       tier help VERB             the same as tier-VERB --help\n"
      "       tier --version\n";
  text += section("Product", kProduct, verbs);
  text += section("Laboratory", kLaboratory, verbs);
  if (!verbs.empty()) text += "\nOthers\n";
  for (const std::string& verb : verbs) text += fmt::format("  {}\n", verb);
  return text + "\nModels are run by tierd (tierd --help).\nExit: that of tier-VERB; 2 if there is none.\n";
}

bool known_in_laboratory(std::string_view verb) {
  return std::ranges::any_of(kLaboratory, [&](const Verb& known) { return known.name == verb; });
}

int refuse(std::string_view verb) {
  if (verb.starts_with("-")) {
    say(fmt::format("tier: {} is not an option of tier (see tier --help)", verb));
    return kBadInput;
  }
  if (known_in_laboratory(verb)) {
    say(
        fmt::format("tier: tier-{} is neither beside tier nor in PATH; it belongs to the laboratory; build "
                    "it in the source tree with ci/install && cmake --preset release -D TIERD_LAB=ON && "
                    "cmake --build --preset release --target tier-{}",
                    verb, verb));
    return kBadInput;
  }
  const std::set<std::string> verbs = installed_verbs();
  const std::vector<std::string_view> words(verbs.begin(), verbs.end());
  const std::string_view near = nearest(verb, words);
  say(fmt::format("tier: there is no verb '{}'{} (see tier --help)", verb,
                  near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  return kBadInput;
}

// Returns only if the program cannot be executed. It gets the standard streams and signals as they are.
int execute(std::string_view verb, std::vector<std::string> arguments) {
  std::string path = find_verb(verb);
  if (!path.empty()) {
    std::vector<char*> argv = {path.data()};
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    ::execv(path.c_str(), argv.data());
  }
  const int error = errno;
  prepare_standard_streams();
  if (path.empty()) return refuse(verb);
  say(fmt::format("tier: {}: cannot be executed: {}", path, std::strerror(error)));
  return kFailed;
}

int print(std::string_view text) {
  prepare_standard_streams();
  const Status written = write_output(text);
  return written.ok() ? 0 : fail(written.error(), kFailed);
}

int run(std::vector<std::string> words) {
  const std::string verb = words.empty() ? "help" : words.front();
  if (!words.empty()) words.erase(words.begin());
  if (verb == "--version") return print("tier " TIERD_VERSION "\n");
  if (verb != "help" && verb != "--help" && verb != "-h") return execute(verb, std::move(words));
  if (!words.empty() && words.front() != "help") return execute(words.front(), {"--help"});
  return print(help_text());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  return tierd::run({argv + std::min(argc, 1), argv + argc});
}
