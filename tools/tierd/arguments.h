// The command line of tierd, by llama.cpp's names where llama.cpp has one.
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
  Config config;                       // file, then --set, then the flags that stand for keys
  std::string config_file;             // or empty
  std::vector<std::string> overrides;  // --set
  Config read_config;                  // what these two say
  HubRequest hub;                      // the model, where a hub has it
  HubRequest draft_hub;                // the draft model, likewise
  std::string hub_token;               // of the command line; no message ever holds it
  bool offline = false;                // take it from the cache alone
  std::string prompt;
  int64_t predict = -1;  // tokens to generate; -1: until the model ends or the context is full
  SamplerOptions sampling;
  bool ignore_eos = false;
  bool special = false;            // print control tokens
  std::vector<std::string> stops;  // strings that end a text
  bool shorten = true;             // a context that was not given
  uint32_t shortest_context = 256;
  bool fit = false;  // and raise a budget that was
  bool force = false;
  bool check = false;
  bool plan = false;
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
  std::vector<std::string> cors_origins;   // of pages
  std::string alias;                       // of the model, to clients
  std::string chat_template;               // its family; empty: the model's own
  bool list_plugins = false;
  std::string plugin;  // print its manual

  bool serves() const { return mode == Mode::serve; }
};

// Parses, and reads the configuration. An answer with an exit code when the program should end here: 0 after
// --help or --version, 2 after an error, which has been printed.
struct Parsed {
  std::optional<int> exit_code;
  Arguments arguments;
};
Parsed parse_arguments(int argc, char** argv);

}  // namespace tierd
