// The part of a command line that says which model runs, and how: the same for all programs that pass a text
// through a model.
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
  // What is bound lives as long as this.
  void declare(CommandLine& line);

  // The configuration, with what the command line says over it. Errors: those of load_config.
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
