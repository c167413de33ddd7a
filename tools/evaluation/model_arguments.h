// Command-line arguments that select a model and how it runs, for all programs that run a text through one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/config/config.h"
#include "tools/command_line/command_line.h"

namespace tierd {

class ModelArguments {
 public:
  // The bound variables live as long as this object.
  void declare(CommandLine& line);

  // Returns the configuration, with the command line's settings applied. Errors: those of load_config.
  Result<Config> config() const;
  bool fit() const { return fit_; }
  bool quiet() const { return quiet_; }

 private:
  std::string file_, model_, tokenizer_;
  std::vector<std::string> overrides_, plugin_folders_;
  std::optional<uint32_t> threads_, context_;
  bool fit_ = false;
  bool quiet_ = false;
};

}  // namespace tierd
