// The base of the worlds around an agent: places for messages, with every byte checked, and the agent.
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

// Places for the lists, rows and destinations of messages; each place belongs to one message, whose slot is
// the place's number. A released place rests before it is used again, so that late writes show.
class Places {
 public:
  // `bytes` of destinations each, committed as they are used.
  Places(uint32_t most, uint64_t bytes);

  std::span<std::byte> memory() const { return {memory_.get(), most_ * bytes_}; }
  // Set-up: the number of places in use, more than are ever in flight. Returns false if there are fewer.
  bool use(uint32_t n);
  uint32_t take();
  std::byte* at(uint32_t place) const { return memory_.get() + place * bytes_; }
  // The owner of the place fills these lists until it is sealed; then they stay until the message completes.
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
  std::deque<uint32_t> free_;  // the place that has been free longest first
  std::string trespass_;
};

// The common part of all worlds.
class PlacedWorld : public AgentWorld {
 public:
  Agent& agent() final { return *made_.agent; }
  std::string trespass() final { return places_.trespass(); }
  Request control(Op op, const MessageId& about) override;

 protected:
  static constexpr uint16_t kAgent = 1;   // the agent's number
  static constexpr MemoryId kMemory = 1;  // the memory that it reads into, or owns
  static constexpr uint32_t kMostPlaces = 1024;

  PlacedWorld(uint64_t seed, uint64_t place_bytes) : random_(seed), places_(kMostPlaces, place_bytes) {}

  // Makes the agent, as many places as it has credits, and as many that rest.
  Status make(const AgentChoice& choice, AgentContext& context);
  const MadeAgent& made() const { return made_; }
  // Destroys the agent before the objects that it was given.
  void end() { made_ = {}; }
  // Makes a request with the place's units and rows, and seals them.
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
