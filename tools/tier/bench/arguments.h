// The command line of tier-bench.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "tools/lab/plot/plot_file.h"
#include "tools/tier/bench/peer.h"
#include "tools/tier/bench/sweep.h"

namespace tierd {

enum class Format { md, json, csv };

// One test: prompts of so many tokens, or so many tokens one by one.
struct Workload {
  enum class Kind { prefill, decode } kind = Kind::decode;
  uint32_t tokens = 0;

  std::string name() const { return (kind == Kind::prefill ? "pp" : "tg") + std::to_string(tokens); }
};

struct PeerArguments {
  std::string command;
  RatePattern rate;
  bool keep = false;  // our runtime stays loaded while the peer runs
};

// The text that decoding continues, instead of random tokens.
struct TextArguments {
  std::string file;
  std::string text;
};

struct Arguments {
  Config config;
  std::string config_file;
  std::vector<std::string> overrides;
  std::optional<TextArguments> text;
  std::vector<Workload> tests;
  uint32_t rounds = 0;        // blocks of each test that count
  double block_seconds = 0;   // a block lasts at least this long; 0: its test runs once
  double warmup_seconds = 0;  // before the first block after loading
  std::optional<PeerArguments> peer;
  bool fit = false;
  bool quiet = false;
  Format format = Format::md;
  std::optional<Sweep> sweep;
  std::optional<PlotFile> plot;
};

struct Parsed {
  std::optional<int> exit_code;  // set: all output is printed, exit with this code
  Arguments arguments;
};
Parsed parse_arguments(int argc, char** argv);

}  // namespace tierd
