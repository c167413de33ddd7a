// A measurement as the command line describes it, and the arguments that tier-bench and tier-sweep share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/config.h"
#include "tools/command_line/command_line.h"
#include "tools/measurement/peer.h"

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
};

inline constexpr uint32_t kDefaultRounds = 5;

// The arguments that every measurement has. Fills an Arguments, which must outlive it.
class MeasurementArguments {
 public:
  explicit MeasurementArguments(Arguments& arguments) : arguments_(arguments) {}

  // Adds the arguments to the command line of `program`, which has not been parsed.
  void add_to(const char* program, CommandLine& line);
  const Argument& repetitions() const { return *repetitions_; }

  // Reads the configuration and the text, and chooses the tests. `alone`: there is no peer, so that what is
  // not asked for is measured, too. Errors: those of load_config and of the file; invalid_argument.
  Status complete(bool alone);
  // Writes the flags over a configuration's keys. Error: invalid_argument for a prompt that exceeds the
  // context.
  Status settle(Config& config) const;
  // Returns the flag that was given for a key of the configuration, such as "-t" for run.threads; or "".
  std::string_view flag_of(std::string_view key) const;

 private:
  Arguments& arguments_;
  std::string program_;
  std::string model_, text_file_;
  std::string format_ = "md";
  bool json_ = false;
  std::optional<uint32_t> prompt_, generate_, rounds_, context_, threads_, ubatch_;
  std::optional<uint64_t> seed_;
  uint32_t most_prompt_ = 0, most_generate_ = 0;  // tokens of the tests
  std::optional<Argument> repetitions_;
};

}  // namespace tierd
