// Command-line arguments of programs that make a store: its cuts and layout.
#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/store/write_options.h"
#include "core/strategy/plugin_path.h"
#include "tools/command_line/command_line.h"

namespace tierd {

class StoreArguments {
 public:
  // Adds the arguments to a command line that has not been parsed; must live until it is parsed.
  void add_to(CommandLine& line);

  // Adds the arguments of encodings, for programs that convert existing weights.
  void add_encodings_to(CommandLine& line);

  // The file of rates that orders the channels, see in_order_of_use; or empty.
  const std::string& order() const { return order_; }
  uint32_t layer_group() const { return layer_group_; }
  bool experts_in_channels() const { return experts_ == "channels"; }

  bool given() const;  // any of them except the plugin folders
  // Loads the codec, if one is named. Errors: those of numbers, and of choose_compression.
  Result<WriteOptions> options() const;
  // The folders in which a store's codec is searched.
  PluginPath plugin_path() const;

 private:
  std::string neuron_bytes_;
  std::string layout_ = "row";
  uint32_t layer_group_ = 1;
  std::string experts_ = "whole";
  std::string order_;
  std::string encoding_ = "source";
  std::string head_encoding_ = "same";
  std::string bundling_ = "row-column";
  std::string compression_ = "none";
  std::string editions_ = "none";
  std::vector<std::string> codec_settings_;
  std::vector<std::string> plugin_folders_;
  std::vector<Argument> arguments_;
};

}  // namespace tierd
