// An agent that completes every request without doing anything: for runs without weights.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/agent/agent.h"
#include "core/base/take_first.h"
#include "core/kernel/site.h"

namespace tierd {

class IdleAgent final : public Agent {
 public:
  // Neurons that are read count with the bytes of their slots, moved ones with the bytes that cross the link:
  // neurons made smaller on the way count with their new size. `editions` outlive the agent.
  IdleAgent(std::span<const Edition> editions, uint32_t credits) : editions_(editions), credits_(credits) {}

  std::string_view name() const override { return "idle"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload& payload) override {
    if (done_.size() == credits_) return Submit::busy;
    Done& done = done_.emplace_back();
    done.id = message.id;
    done.lane = message.lane;
    done.n_done = message.n_units;
    if (message.op == Op::read) {
      const EditionId made_of = editions_[message.edition].made_of;
      const Edition& stored = editions_[made_of != kNoEdition ? made_of : message.edition];
      done.bytes = uint64_t{message.n_units} * stored.slot_bytes;
    } else if (message.op == Op::move) {
      const bool made = (message.flags & kRecode) != 0;
      const uint64_t becomes = made ? editions_[message.edition].bytes.front() : message.unit_bytes;
      done.bytes = std::min(payload.moved_bytes(message), message.n_units * becomes);
    }
    return Submit::ok;
  }
  Drive drive() override { return done_.empty() ? Drive::idle : Drive::busy; }
  size_t poll(std::span<Done> done) override { return take_first(done_, done); }

 private:
  const std::span<const Edition> editions_;
  const uint32_t credits_;
  std::vector<Done> done_;
};

}  // namespace tierd
