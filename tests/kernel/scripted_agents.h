// A flash agent whose reads end when the test says so, and a compute agent that records its messages. Bytes
// are checked: a read writes the number of its extent at its place, and compute finds the number of every
// neuron there.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/message.h"
#include "core/agent/pool.h"
#include "core/kernel/site.h"

namespace tierd {

inline constexpr uint32_t kSlot = 4096;
inline constexpr uint32_t kUnread = 0xdeadbeef;

using Neurons = std::vector<uint32_t>;

struct Read {
  Message message;
  std::vector<Unit> units;
  Neurons extents;
  Neurons neurons = {};  // of a move that recodes
  std::vector<uint32_t> lengths = {};
};

// An agent for reads and for moves between memories, which the test ends. The oldest is first. A move's list
// has places.
class ManualFlash final : public Agent {
 public:
  ManualFlash(uint32_t credits, const PoolTable& pools) : credits_(credits), pools_(pools) {}
  std::string_view name() const override { return "manual flash"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override { return Drive::idle; }
  size_t poll(std::span<Done> done) override;

  // Ends open[i].
  void finish(size_t i = 0, DoneStatus status = DoneStatus::ok, uint32_t first_bad = 0, uint16_t error = 5);
  bool was_cancelled(const Read& read) const;

  std::vector<Read> open;
  std::vector<Read> started;
  std::vector<MessageId> cancels;
  std::vector<MessageId> raises;
  size_t most_open = 0;

 private:
  void stamp(const Read& read, bool landed);
  void answer(MessageId id, DoneStatus status, uint16_t aux, uint32_t first_bad, uint64_t bytes = 0);

  const uint32_t credits_;
  const PoolTable& pools_;
  uint32_t held_ = 0;
  std::vector<Done> done_;
};

struct Computed {
  SiteId site = 0;
  EditionId edition = 0;  // of the neurons
  uint32_t step = 0;
  Op op = Op::run;
  bool before = false;
  bool after = false;
  std::vector<uint32_t> neurons;
  std::vector<std::string> takes = {};  // "input of 1", "1,3 of 2"
  bool partial = false;
  bool measured = false;
  bool told = false;
  std::map<uint32_t, uint64_t> rows = {};  // row masks of the neurons that not all rows use
};

// Return the input that a segment before leaves, and a neuron's contribution to a row.
float input_value(SiteId site, uint32_t row, uint32_t column);
float contribution_value(uint32_t row, uint32_t neuron);
// Returns the value that a unit leaves in all of a site's output when it computes neurons.
float output_value(const Message& message);

// Computes in private buffers: other agents see only what it gives.
class RecordingCompute final : public Agent {
 public:
  RecordingCompute(uint32_t credits, const PoolTable& pools, const SiteTable& sites)
      : credits_(credits), pools_(pools), sites_(sites) {}
  std::string_view name() const override { return "recording compute"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;

  // Returns "1 compute 0,2", "2 compute 1,3 takes input of 1", "1 run takes 1,3 of 2 A" or "1 run B".
  static std::string text(uint16_t agent, const Computed& c);

  uint64_t arena_bytes = 0;                   // at the beginning of its memory
  std::vector<std::string>* order = nullptr;  // appends its actions, beside other agents
  bool hold = false;                          // computes nothing until released
  bool fail_next = false;                     // the next message fails
  uint32_t first_bad = 0;                     // reported by that failure
  size_t runs = 0;                            // messages, each of one or more sites
  std::vector<Computed> log;

 private:
  float& at(const ActivationPlace& place, uint32_t row, uint32_t column);
  struct Request {
    Message message;
    Payload payload;
  };
  void rearrange(const Request& request);
  void compute(const Message& message, const Payload& payload);
  void check_stamps(const Message& message, uint32_t neuron, const std::byte* slot) const;
  void use_activations(const Message& message, const Payload& payload, Computed& computed);
  void give(const Message& message, const Give& give);
  void check_values(const Message& message, const Take& take) const;
  std::string take_text(const Site& site, const Take& take) const;
  void answer(MessageId id);

  const uint32_t credits_;
  const PoolTable& pools_;
  const SiteTable& sites_;
  std::vector<float> buffers_;
  std::deque<Request> queue_;
  std::vector<Done> done_;
};

// One agent that computes and that moves neurons into its own memory. A run behind a move is computed after
// the test has ended that move.
class MovingCompute final : public Agent {
 public:
  MovingCompute(RecordingCompute& compute, ManualFlash& mover) : compute_(compute), mover_(mover) {}
  std::string_view name() const override { return "moving compute"; }
  uint32_t credits() const override { return compute_.credits(); }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;

  size_t waiting_runs() const { return waiting_.size(); }

 private:
  struct Request {
    Message message;
    Payload payload;
  };
  RecordingCompute& compute_;
  ManualFlash& mover_;
  std::deque<Request> waiting_;  // the first waiting run and all after it
  std::vector<MessageId> open_;  // moves
  std::vector<MessageId> failed_;
  std::vector<Done> done_;
};

}  // namespace tierd
