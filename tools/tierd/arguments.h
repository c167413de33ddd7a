// The command line of tierd. Flags have llama.cpp's names where llama.cpp has them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/model/sampling/sampler.h"
#include "tools/tierd/hub/repository.h"

namespace tierd {

enum class Mode : uint8_t {
  text,  // continues a prompt
  chat,
  serve,
};

struct Arguments {
  Config config;                       // the file, then --set, then flags that stand for keys
  std::string config_file;             // empty: none was named
  std::vector<std::string> overrides;  // --set
  Config read_config;                  // the file and --set alone
  HubRequest hub;                      // the model, where it is named by a hub repository
  HubRequest draft_hub;                // the draft model, likewise
  std::string hub_token;               // from the command line; no message contains it
  bool offline = false;                // use the cache of hub models alone
  std::string prompt;
  int64_t predict = -1;  // tokens to generate; -1: until the model ends or the context is full
  SamplerOptions sampling;
  bool ignore_eos = false;
  bool special = false;            // print control tokens
  std::vector<std::string> stops;  // strings that end a text
  bool shorten = true;             // shorten a context that was not given, to fit the budget
  uint32_t shortest_context = 256;
  bool fit = false;  // shorten such a context, and raise a budget that is too small
  bool force = false;
  bool check = false;
  bool json = false;
  bool quiet = false;
  bool prompt_given = false;
  Mode mode = Mode::serve;
  std::string system_prompt;  // of a chat
  bool single_turn = false;   // a chat ends with the first answer
  std::string host = "127.0.0.1";
  uint32_t port = 8080;
  std::vector<std::string> api_keys;
  std::vector<std::string> allowed_hosts;  // more names of the server
  std::vector<std::string> cors_origins;   // origins of pages that may read answers
  std::string alias;                       // the model's name for clients
  std::string chat_template;               // the name of a chat template; empty: the model's own
  std::string chat_template_file;          // the file of a chat template; empty: none
  bool list_plugins = false;
  bool list_figures = false;
  std::string plugin;  // print this plugin's manual

  bool serves() const { return mode == Mode::serve; }
};

// Parses the command line and reads the configuration. `exit_code` is set where the program should end: 0
// after --help or --version, 2 after an error, which has been printed.
struct Parsed {
  std::optional<int> exit_code;
  Arguments arguments;
};
Parsed parse_arguments(int argc, char** argv);

}  // namespace tierd
