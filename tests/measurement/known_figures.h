// Blocks with known figures, and a run that they belong to.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/measurement/report.h"

namespace tierd {

inline constexpr uint32_t kLayers = 2;

// Returns ten tokens in `seconds`: 60 % compute, 30 % stall; 2 of 4 GB read from a disk of 4 GB/s.
inline Round round_of(double seconds) {
  Round round;
  Block& block = round.ours;
  block.tokens = 10;
  block.seconds = seconds;
  block.times.steps = block.times.tokens = 10;
  block.times.wall_ns = static_cast<uint64_t>(seconds * 1e9);
  block.times.compute_ns = static_cast<uint64_t>(seconds * 0.6e9);
  block.times.stall_ns = static_cast<uint64_t>(seconds * 0.3e9);
  block.times.read_bytes = 20'000'000'000;
  block.times.resident_bytes = 20'000'000'000;
  block.times.messages = 50;
  block.wake_ups = 40;
  block.flash_ns = 11'000'000'000;
  block.flash_steps = 11;
  block.reads = 88;
  block.device_bytes = 22'000'000'000;
  block.memory = {1'500'000'000, 1'000'000'000};
  block.cache = {{"k", 3.5}};
  block.traffic = {2e9, 4e9};
  block.bandwidths = {4e9, 40e9};
  block.energy.emplace();
  block.energy->described_by = "box.toml";
  block.energy->not_counted = {{EnergyPart::gpu, "tiers.gpu: the host stands for it"}};
  block.energy->parts = {{EnergyPart::processor, "RAPL", "", 0, 30 * seconds},
                         {EnergyPart::dram, "", "", 0, 2 * seconds}};
  block.energy->run = {.seconds = seconds,
                       .tokens = 10,
                       .joules = 32 * seconds,
                       .operational_grams = 0.02,
                       .embodied_grams = 0.01};
  round.disk = {4e9};
  return round;
}

inline Measurement result() {
  Measurement result;
  result.test = {Workload::Kind::decode, 10};
  for (const double seconds : {10.0, 8.0, 12.5}) result.rounds.push_back(round_of(seconds));
  result.repeated = 1;
  return result;
}

inline nlohmann::json run() {
  return {{"date", "2026-03-01 12:30:00 UTC"},
          {"commit", "abc"},
          {"host", "box"},
          {"cpu", "A \"CPU\""},
          {"cores", 2},
          {"memory_bytes", 8e9},
          {"model", "llama-2-7b"},
          {"shape",
           {{"architecture", "llama"},
            {"layers", kLayers},
            {"d_model", 64},
            {"d_ff", 128},
            {"encoding", "q4_0"}}},
          {"tensor_bytes", 4e9},
          {"config", "configs/hybrid.toml"},
          {"set", {"a=1"}},
          {"predictor", "dense"},
          {"quantizer", "plain"},
          {"cache", "pinned"},
          {"balancer", "single"},
          {"activations", "int8"},
          {"kv", "f16"},
          {"backend", "host"},
          {"clock", "wall"},
          {"kernels", "scalar"},
          {"threads", 2},
          {"context", 128},
          {"prefill_chunk", 128},
          {"device", "io_uring"},
          {"cache_state", "direct I/O"},
          {"seed", 0},
          {"text", nullptr},
          {"uncounted_tokens", 1},
          {"block_seconds", 30},
          {"warmup_seconds", 10},
          {"budget", {{"capacity_bytes", 2e9}, {"peak_bytes", 1.9e9}, {"raised_to_least", false}}},
          {"memory", memory_json({1'000'000, MemoryGroupUse{2'000'000, 1'500'000}})}};
}

// Returns a sweep of two keys with four points, the last of which has failed.
inline nlohmann::json swept() {
  using nlohmann::json;
  json common = run();
  common["cache"] = nullptr;
  json points = json::array();
  for (const char* name : {"lru", "pi'n|ned"}) {
    for (const char* k : {"1", "2"}) {
      json point = {{"values", {{"cache.name", name}, {"cache.k", k}}},
                    {"error", nullptr},
                    {"run", run()},
                    {"tests", json::array({test_json(result(), kLayers)})}};
      point["run"]["cache"] = name;
      points.push_back(std::move(point));
    }
  }
  points.back()["run"] = nullptr;
  points.back()["tests"] = json::array();
  points.back()["error"] = "tiers.dram.capacity: too small | by far";
  return {{"run", common},
          {"sweep", json::array({{{"key", "cache.name"}, {"values", {"lru", "pi'n|ned"}}},
                                 {{"key", "cache.k"}, {"values", {"1", "2"}}}})},
          {"points", points},
          {"peer", nullptr}};
}

// Splits a line of CSV at commas outside quotes.
inline std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char c : line) {
    if (c == '"') inside = !inside;
    if (c == ',' && !inside) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

}  // namespace tierd
