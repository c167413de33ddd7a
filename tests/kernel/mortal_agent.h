// Forwards to another agent until it dies. Messages that it has accepted by then, and all later ones,
// complete as lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "core/agent/agent.h"

namespace tierd {

class MortalAgent final : public Agent {
 public:
  explicit MortalAgent(Agent& agent) : agent_(agent) {}
  std::string_view name() const override { return agent_.name(); }
  uint32_t credits() const override { return agent_.credits(); }
  Submit submit(const Message& message, const Payload& payload) override {
    if (dead()) {
      lost_.push_back(lost(message));
      return Submit::ok;
    }
    if (agent_.submit(message, payload) == Submit::busy) return Submit::busy;
    open_[message.id.slot] = message;
    if (++accepted_ == dies_at) die();
    return Submit::ok;
  }
  Drive drive() override { return dead() ? Drive::idle : agent_.drive(); }
  size_t poll(std::span<Done> done) override {
    if (dead()) {
      const size_t n = std::min(done.size(), lost_.size());
      std::copy_n(lost_.begin(), n, done.begin());
      lost_.erase(lost_.begin(), lost_.begin() + static_cast<std::ptrdiff_t>(n));
      return n;
    }
    const size_t n = agent_.poll(done);
    for (size_t i = 0; i < n; ++i) open_.erase(done[i].id.slot);
    return n;
  }

  int wait_fd() const override { return agent_.wait_fd(); }
  bool waiting() const override { return !dead() && agent_.waiting(); }

  uint32_t dies_at = 0;  // dies after accepting this many messages; 0: never
  bool dead() const { return dies_at != 0 && accepted_ >= dies_at; }

 private:
  static Done lost(const Message& message) {
    Done done;
    done.id = message.id;
    done.lane = message.lane;
    done.status = DoneStatus::lost;
    return done;
  }
  void die() {
    for (const auto& [slot, message] : open_) lost_.push_back(lost(message));
    open_.clear();
  }

  Agent& agent_;
  uint32_t accepted_ = 0;
  std::map<uint32_t, Message> open_;
  std::vector<Done> lost_;
};

}  // namespace tierd
