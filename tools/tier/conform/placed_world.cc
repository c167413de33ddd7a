// Allocates and checks places, and makes the messages that name them.
#include "tools/tier/conform/placed_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/align.h"
#include "core/base/check.h"

namespace tierd {
namespace {

constexpr int kUntouched = 0xEE;

}  // namespace

Places::Places(uint32_t most, uint64_t bytes)
    : bytes_(bytes),
      memory_(static_cast<std::byte*>(std::aligned_alloc(kDirectIoAlignment, most * bytes))),
      most_(most),
      lists_(most) {}

bool Places::use(uint32_t n) {
  if (n > most_ || memory_ == nullptr) return false;
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
  if (lists_[place].units != lists_[place].sealed) trespass_ = "the list of a message has changed";
  lists_[place] = {};
  std::memset(at(place), kUntouched, bytes_);
  free_.push_back(place);
}

bool Places::untouched(std::span<const std::byte> memory) {
  // Compares the first byte, then each byte with the next: fast under sanitizers too.
  return memory.empty() || (memory[0] == std::byte{kUntouched} &&
                            std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0);
}

std::string Places::trespass() {
  for (const uint32_t place : free_) look_at(place);
  return trespass_;
}

void Places::look_at(uint32_t place) {
  if (!untouched({at(place), bytes_})) trespass_ = "memory was written after its message had completed";
}

Request PlacedWorld::control(Op op, const MessageId& about) {
  Request request = this->request(op, places_.take());
  request.message.about = about;
  return request;
}

Status PlacedWorld::make(const AgentChoice& choice, AgentContext& context) {
  if (places_.memory().data() == nullptr)
    return Error{Code::no_space, choice.origin, fmt::format("no memory for {} B", places_.memory().size())};
  TIERD_ASSIGN(made_, make_agent(choice, context));
  if (places_.use(2 * std::min(agent().credits(), kMostPlaces) + 8)) return {};
  return Error{Code::unsupported, choice.origin,
               fmt::format("has {} credits, expected at most {}", agent().credits(), kMostPlaces / 2 - 4)};
}

Request PlacedWorld::request(Op op, uint32_t place) {
  places_.seal(place);
  Request request;
  request.payload = {.units = places_.units(place), .rows = places_.rows(place)};
  Message& message = request.message;
  message.id = {.slot = place, .generation = ++generation_};
  message.op = op;
  message.agent = kAgent;
  message.memory = kMemory;
  message.rows = static_cast<uint16_t>(request.payload.rows.size());
  message.n_units = static_cast<uint32_t>(request.payload.units.size());
  return request;
}

}  // namespace tierd
