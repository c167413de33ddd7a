// What the worlds around an agent share: places for messages, of whose memory every byte is watched, and the
// agent that is given them.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/random.h"
#include "tools/tier-conform/agent_suite.h"

namespace tierd {

// Places for what messages name: a list, what follows it (rows, destinations), each place for one message. A
// place rests after its message before it is used again, so that late writes show.
class Places {
 public:
  // Memory is committed by use.
  Places(uint32_t most, uint64_t list_bytes, uint64_t bytes);

  std::span<std::byte> memory() const { return {memory_.get(), most_ * bytes_}; }
  // Set-up: how many are used; more than are ever in flight.
  bool use(uint32_t n);
  uint32_t take();
  std::byte* at(uint32_t place) const { return memory_.get() + place * bytes_; }
  Span span(uint32_t place, uint64_t offset, uint64_t bytes) const {
    return {kKernel, 0, static_cast<uint32_t>((place * bytes_ + offset) / kSpanUnit),
            static_cast<uint32_t>(bytes)};
  }
  uint32_t place_of(const Message& message) const {
    return static_cast<uint32_t>(message.list.offset * kSpanUnit / bytes_);
  }
  // The list is written: it stays as it is until the message is over.
  void seal(uint32_t place) { lists_[place].assign(at(place), at(place) + list_bytes_); }
  void release(uint32_t place);
  static bool untouched(std::span<const std::byte> memory);
  std::string trespass();

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  void look_at(uint32_t place);

  const uint64_t list_bytes_;
  const uint64_t bytes_;
  const std::unique_ptr<std::byte[], FreeMemory> memory_;
  const uint32_t most_;
  std::vector<std::vector<std::byte>> lists_;  // [places]
  std::deque<uint32_t> free_;                  // the longest free first
  std::string trespass_;
};

// What all worlds share.
class PlacedWorld : public AgentWorld {
 public:
  Agent& agent() final { return *made_.agent; }
  std::string trespass() final { return places_.trespass(); }
  Message control(Op op, const MessageId& target) override;

 protected:
  static constexpr uint16_t kAgent = 1;  // its number
  static constexpr uint32_t kMostPlaces = 1024;

  PlacedWorld(uint64_t seed, uint64_t list_bytes, uint64_t place_bytes)
      : random_(seed), places_(kMostPlaces, list_bytes, place_bytes) {}

  // The agent is there, and as many places as it has credits, and as many that rest.
  Status make(const AgentChoice& choice, AgentContext& context);
  // Before what the agent was given goes.
  void end() { made_ = {}; }
  Message message(Op op, uint32_t place, uint64_t list_bytes);
  void write_list(uint32_t place, uint16_t agent, std::span<const Unit> units);

  PoolTable pools_;
  Random random_;
  Places places_;

 private:
  uint32_t generation_ = 0;
  MadeAgent made_;
};

}  // namespace tierd
