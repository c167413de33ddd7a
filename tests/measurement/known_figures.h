// Blocks with known figures, and a run that they belong to.
#pragma once

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

inline BenchRunFigures run() {
  BenchRunFigures run;
  run.date = "2026-03-01 12:30:00 UTC";
  run.commit = "abc";
  run.host = "box";
  run.cpu = "A \"CPU\"";
  run.cores = 2;
  run.memory_bytes = 8'000'000'000;
  run.model = "llama-2-7b";
  run.shape.architecture = "llama";
  run.shape.layers = kLayers;
  run.shape.d_model = 64;
  run.shape.d_ff = 128;
  run.shape.encoding = "q4_0";
  run.tensor_bytes = 4'000'000'000;
  run.config = "configs/hybrid.toml";
  run.set = {"a=1"};
  run.predictor = "dense";
  run.quantizer = "plain";
  run.cache = "pinned";
  run.balancer = "single";
  run.activations = "int8";
  run.kv = "f16";
  run.backend = "host";
  run.clock = "wall";
  run.kernels = "scalar";
  run.threads = 2;
  run.context = run.prefill_chunk = 128;
  run.device = "io_uring";
  run.cache_state = "direct I/O";
  run.seed = 0;
  run.uncounted_tokens = 1;
  run.block_seconds = 30;
  run.warmup_seconds = 10;
  run.budget.capacity_bytes = 2'000'000'000;
  run.budget.peak_bytes = 1'900'000'000;
  run.budget.raised_to_least = false;
  run.memory = ProcessFigures{1'000'000, GroupFigures{2'000'000, 1'500'000}};
  return run;
}

// Returns a report of one test.
inline BenchFigures report_of(const Measurement& measured) {
  return {.run = run(), .tests = {test_figures(measured, kLayers)}, .peer = {}};
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
