// What a run is: TOML files over defaults, --set over TOML. Every key is declared once, in config.cc; an
// unknown one is an error that names file and line and suggests the nearest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

struct Config {
  // [model]
  std::string model;
  std::string tokenizer;
  // [run]
  uint32_t threads = 0;  // compute workers; 0: all cores
  uint32_t context = 0;  // 0: the model's, at most 4096
  uint32_t ubatch = 512;
  std::string kv = "f16";
  uint64_t seed = 0;
  bool bind = true;
  // [compute]
  std::string activations = "int8";
  std::string kernels = "auto";
  // [tiers.flash]
  std::string flash_device = "auto";
  uint32_t flash_depth = 32;
  std::string flash_max_read = "1 MiB";
  bool flash_verify = true;
  bool flash_direct = true;
  std::string flash_thread = "kernel";
  std::string flash_core;  // of a thread of its own; empty: unbound
  // [tiers.dram]
  std::string dram_capacity = "all";
  std::string dram_staging = "64 MiB";
  std::string dram_thread = "kernel";
  std::string dram_core;
  // the strategies
  std::string predictor = "dense";
  std::string quantizer = "plain";
  std::string cache = "pinned";
  std::string balancer = "single";
  // [scheduler]
  bool prefetch = true;
  std::string shuffle;  // a seed: tests
};

// `file` may be empty (defaults). `overrides`: "key=value", the value in TOML or a bare word. All errors are
// collected, one a line.
Result<Config> load_config(const std::string& file, const std::vector<std::string>& overrides);

// The keys with their types, defaults and one line of help, for --help and the manual.
std::string config_manual();

}  // namespace tierd
