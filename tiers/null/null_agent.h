// The smallest agent: it accepts every message and completes it, having done nothing. Copy it to start one of
// your own (tiers/README.md). It also stands in for a tier in tests of the kernel, where only time matters.
#pragma once

#include <functional>
#include <vector>

#include "core/kernel/agent.h"

namespace tierd {

class NullAgent final : public Agent {
 public:
  // How long a message takes under the modelled clock. It must be pure: same message, same time.
  using ServiceTime = std::function<uint64_t(const Message&)>;

  explicit NullAgent(uint32_t credits = 64, ServiceTime service = {})
      : credits_(credits), service_(std::move(service)) {}

  std::string_view name() const override { return "null"; }
  uint32_t credits() const override { return credits_; }
  Submit submit(const Message& message, const Payload& payload) override;
  Drive drive() override;
  size_t poll(std::span<Done> done) override;
  uint64_t service_ns(const Message& message, const Payload&) const override {
    return service_ ? service_(message) : 0;
  }

 private:
  const uint32_t credits_;
  const ServiceTime service_;
  std::vector<Message> accepted_;  // not yet driven, oldest first
  std::vector<Done> done_;         // not yet polled, oldest first
};

}  // namespace tierd
