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
#include "core/kernel/post/clocks.h"
#include "tools/tier/conform/agent_suite.h"

namespace tierd {

// Places for what messages name: a list, rows, and destinations; each place for one message, which has its
// number for a slot. A place rests after its message before it is used again, so that late writes show.
class Places {
 public:
  // `bytes` of destinations each; committed by use.
  Places(uint32_t most, uint64_t bytes);

  std::span<std::byte> memory() const { return {memory_.get(), most_ * bytes_}; }
  // Set-up: how many are used; more than are ever in flight. False where there is no room for so many.
  bool use(uint32_t n);
  uint32_t take();
  std::byte* at(uint32_t place) const { return memory_.get() + place * bytes_; }
  // Written by whoever took the place, until it is sealed: then they stay as they are until the message is
  // over.
  std::vector<Unit>& units(uint32_t place) { return lists_[place].units; }
  std::vector<RowInfo>& rows(uint32_t place) { return lists_[place].rows; }
  void seal(uint32_t place) { lists_[place].sealed = lists_[place].units; }
  void release(uint32_t place);
  static bool untouched(std::span<const std::byte> memory);
  std::string trespass();

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct List {
    std::vector<Unit> units;
    std::vector<Unit> sealed;
    std::vector<RowInfo> rows;
  };

  void look_at(uint32_t place);

  const uint64_t bytes_;
  const std::unique_ptr<std::byte[], FreeMemory> memory_;
  const uint32_t most_;
  std::vector<List> lists_;    // [places]
  std::deque<uint32_t> free_;  // the longest free first
  std::string trespass_;
};

// What all worlds share.
class PlacedWorld : public AgentWorld {
 public:
  Agent& agent() final { return *made_.agent; }
  std::string trespass() final { return places_.trespass(); }
  Request control(Op op, const MessageId& about) override;

 protected:
  static constexpr uint16_t kAgent = 1;   // its number
  static constexpr MemoryId kMemory = 1;  // that it reads into, or has
  static constexpr uint32_t kMostPlaces = 1024;

  PlacedWorld(uint64_t seed, uint64_t place_bytes) : random_(seed), places_(kMostPlaces, place_bytes) {}

  // The agent is there, and as many places as it has credits, and as many that rest.
  Status make(const AgentChoice& choice, AgentContext& context);
  const MadeAgent& made() const { return made_; }
  // Before what the agent was given goes.
  void end() { made_ = {}; }
  // About the place's units and rows, which are sealed.
  Request request(Op op, uint32_t place);

  PoolTable pools_;
  WallClock clock_;
  Random random_;
  Places places_;

 private:
  uint32_t generation_ = 0;
  MadeAgent made_;
};

}  // namespace tierd
