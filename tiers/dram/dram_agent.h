// The DRAM tier: an arena and staging blocks in which reads land, and the CPU that computes from them. Serves
// `run` (neurons of a site, the dense segments around it, or both, with takes from other agents; also joint
// runs, which it does not request, because receiving a run costs it nothing), `move` (slots from any memory
// of this process into this one), `resize` (which of the arena's addresses are in use: before the first one,
// all), `raise` and `cancel` (always too late: the agent works in order).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/agent_entry.h"
#include "core/agent/failed_moves.h"
#include "core/agent/pool.h"
#include "tiers/compute/recoding.h"
#include "tiers/compute/team.h"
#include "tiers/dram/executor.h"
#include "tiers/dram/linear.h"
#include "tiers/dram/reserved_memory.h"

namespace tierd {

class DramAgent final : public Agent, public Products {
 public:
  struct Options {
    uint16_t number = 0;                 // the agent's
    MemoryId memory = 1;                 // the memory's
    uint64_t arena_bytes = 0;            // addresses for slots of all sites
    uint64_t staging_bytes = 0;          // behind the arena
    uint64_t tensor_bytes = 0;           // resident tensors; behind the staging
    std::vector<uint64_t> tensors = {};  // [TensorId] bytes from the beginning of the memory
    std::vector<uint32_t> cores = {};    // the memory is interleaved over the NUMA nodes of these
    uint32_t credits = 64;

    // Returns the options for the context's task.
    static Options of(const AgentContext& context);
  };
  // Registers its memory (arena, staging, tensors; the first two 4096-aligned) and its activations, and
  // declares which pages of the memory stay: those of the staging, and those of the arena that a `resize` has
  // named. The table must outlive the agent.
  static Result<std::unique_ptr<DramAgent>> create(const Options& options, PoolTable& pools, ComputePlan plan,
                                                   const ComputeKernels& kernels, std::unique_ptr<Team> team);

  ~DramAgent() override;

  std::string_view name() const override { return "dram"; }
  uint32_t credits() const override { return options_.credits; }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;

  void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) override {
    tierd::linear(executor_.kernels(), *team_, matrix, x, rows, y);
  }

  // Returns whether neurons of this move are encoded anew.
  bool encodes(const Message& message) const {
    return (message.flags & kRecode) != 0 && recoding_of(message.edition) != nullptr;
  }
  // Returns the bytes of a move that cross from the other memory; if neurons are encoded anew, the encoded
  // bytes, since the sender encodes.
  uint64_t crossing_bytes(const Message& message, const Payload& payload) const;

  // [the agent's thread, or while no message is in flight]
  AgentCounts counts() const;

 private:
  DramAgent(Options options, PoolTable& pools, std::unique_ptr<Team> team, Executor executor,
            ReservedMemory memory);
  struct Request {
    Message message;
    Payload payload;
  };
  Done execute(const Request& request);
  void run(const Message& message, const Payload& payload, Done& done);
  void move(const Request& request, Done& done);
  void expand(const Request& request, Done& done);
  void recode(const Request& request, Done& done);
  const NeuronRecoding* recoding_of(uint32_t edition) const {
    return edition < recodings_.size() && recodings_[edition] ? &*recodings_[edition] : nullptr;
  }
  void resize(std::span<const Unit> ranges, Done& done);
  void commit(std::span<const ReservedMemory::Range> ranges);
  void keep_pages(std::vector<PageRange> of_arena);

  const Options options_;
  PoolTable& pools_;
  const std::unique_ptr<Team> team_;
  Executor executor_;
  const std::vector<std::optional<NeuronRecoding>> recodings_;  // [editions]
  ReservedMemory memory_;
  std::deque<Request> queue_;
  FailedMoves failed_;
  std::deque<Done> done_;
};

}  // namespace tierd
