// The DRAM tier: an arena and staging blocks that reads land in, and the CPU that computes on them. Answers
// `compute` (neurons of a site, with the dense segments around it), `run` (those segments alone), `cancel`
// (never in time: work here is done in order), `stats` and `stop`.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "core/kernel/agent.h"
#include "core/message/pool.h"
#include "tiers/dram/executor.h"
#include "tiers/dram/memory.h"

namespace tierd {

class DramAgent : public Agent {
 public:
  struct Options {
    uint16_t number = 0;         // in the pool table
    uint64_t arena_bytes = 0;    // slots of all sites
    uint64_t staging_bytes = 0;  // follows the arena
    uint64_t tensor_bytes = 0;   // resident tensors; follow the staging
    uint32_t credits = 64;
    double bytes_per_second = 30e9;  // clock = "model": what weights are read at
  };
  // Registers pool 0 (arena, staging, tensors; the first two of them 4096-aligned) and pool 1 (activations).
  static Result<std::unique_ptr<DramAgent>> create(const Options& options, PoolTable& pools,
                                                   Executor executor);

  std::string_view name() const override { return "dram"; }
  uint32_t credits() const override { return options_.credits; }
  Submit submit(const Message& message) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  uint64_t service_ns(const Message& message) const override;

  // Set-up, before the first message; and for reports, when nothing is in flight.
  Executor& executor() { return executor_; }
  uint64_t staging_offset() const { return options_.arena_bytes; }
  uint64_t tensor_offset() const { return options_.arena_bytes + options_.staging_bytes; }
  std::span<std::byte> memory() const { return memory_.bytes(); }

 private:
  DramAgent(const Options& options, PoolTable& pools, Executor executor, Memory memory);
  Done execute(const Message& message);

  Options options_;
  PoolTable& pools_;
  Executor executor_;
  Memory memory_;
  std::deque<Message> queue_;
  std::deque<Done> done_;
};

}  // namespace tierd
