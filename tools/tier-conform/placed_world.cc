// How places are handed out and looked at, and how messages are made that name them.
#include "tools/tier-conform/placed_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/align.h"
#include "core/base/check.h"

namespace tierd {
namespace {

constexpr int kUntouched = 0xEE;

}  // namespace

Places::Places(uint32_t most, uint64_t list_bytes, uint64_t bytes)
    : list_bytes_(list_bytes),
      bytes_(bytes),
      memory_(static_cast<std::byte*>(std::aligned_alloc(kDirectIoAlignment, most * bytes))),
      most_(most),
      lists_(most) {}

bool Places::use(uint32_t n) {
  if (n > most_) return false;
  for (uint32_t i = 0; i < n; ++i) {
    std::memset(at(i), kUntouched, bytes_);
    free_.push_back(i);
  }
  return true;
}

uint32_t Places::take() {
  TIERD_CHECK(!free_.empty());
  const uint32_t place = free_.front();
  free_.pop_front();
  look_at(place);
  return place;
}

void Places::release(uint32_t place) {
  if (std::memcmp(at(place), lists_[place].data(), list_bytes_) != 0)
    trespass_ = "the list of a message has changed";
  std::memset(at(place), kUntouched, bytes_);
  free_.push_back(place);
}

bool Places::untouched(std::span<const std::byte> memory) {
  // The first byte is right and each one equals the next: fast under sanitizers too.
  return memory.empty() || (memory[0] == std::byte{kUntouched} &&
                            std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0);
}

std::string Places::trespass() {
  for (const uint32_t place : free_) look_at(place);
  return trespass_;
}

void Places::look_at(uint32_t place) {
  if (!untouched({at(place), bytes_})) trespass_ = "memory was written to after its message had completed";
}

Message PlacedWorld::control(Op op, const MessageId& target) {
  const uint32_t place = places_.take();
  Message message = this->message(op, place, sizeof target);
  std::memcpy(places_.at(place), &target, sizeof target);
  places_.seal(place);
  return message;
}

Status PlacedWorld::make(const AgentChoice& choice, AgentContext& context) {
  pools_.add(kKernel, places_.memory());
  TIERD_ASSIGN(made_, make_agent(choice, context));
  if (places_.use(2 * std::min(agent().credits(), kMostPlaces) + 8)) return {};
  return Error{Code::unsupported, choice.origin,
               fmt::format("has {} credits, {} can be tried", agent().credits(), kMostPlaces / 2 - 4)};
}

Message PlacedWorld::message(Op op, uint32_t place, uint64_t list_bytes) {
  Message message;
  message.id = {.slot = place, .generation = ++generation_};
  message.op = op;
  message.agent = kAgent;
  message.list = places_.span(place, 0, list_bytes);
  return message;
}

void PlacedWorld::write_list(uint32_t place, uint16_t agent, std::span<const Unit> units) {
  const UnitList header = {static_cast<uint32_t>(units.size()), agent, 0};
  std::memcpy(places_.at(place), &header, sizeof header);
  std::ranges::copy(std::as_bytes(units), places_.at(place) + sizeof header);
  places_.seal(place);
}

}  // namespace tierd
