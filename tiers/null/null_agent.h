// The smallest agent: it accepts every message and completes it without doing anything. Copy it to start an
// agent of your own (tiers/README.md). It also stands for a tier if only time matters.
#pragma once

#include <vector>

#include "core/agent/agent.h"

namespace tierd {

class NullAgent final : public Agent {
 public:
  explicit NullAgent(uint32_t credits = 64) : credits_(credits) {}

  std::string_view name() const override { return "null"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;

 private:
  const uint32_t credits_;
  std::vector<Message> accepted_;  // not yet driven, oldest first
  std::vector<Done> done_;         // not yet polled, oldest first
};

}  // namespace tierd
