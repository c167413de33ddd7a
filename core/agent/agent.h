// A tier agent: one memory and the only code that touches it. Single-threaded: `submit` and `poll` are called
// by the kernel, `drive` by the agent's thread, which is the kernel's own unless the configuration gives the
// agent one (core/agent/agent_thread.h puts a queue in between; the agent itself never sees a second thread).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/agent/message.h"
#include "core/base/result.h"

namespace tierd {

enum class Submit : uint8_t { ok, busy };
enum class Drive : uint8_t { idle, busy };

class Agent {
 public:
  virtual ~Agent() = default;

  virtual std::string_view name() const = 0;
  // The most requests that may be in flight at once: the credits that the kernel has for this agent.
  virtual uint32_t credits() const = 0;

  // Takes over the message, or answers `busy` at once and keeps nothing. Never blocks. What the payload
  // refers to stays as it is until the completion; the payload itself may go.
  virtual Submit submit(const Message& message, const Payload& payload) = 0;
  // Does what can be done now and returns whether there was something to do. Never waits.
  virtual Drive drive() = 0;
  // Hands over up to done.size() completions; each accepted id comes exactly once. Returns how many.
  virtual size_t poll(std::span<Done> done) = 0;

  // A descriptor that turns readable when `drive` would find work that no submit announced (device
  // completions), or -1. Its owner is the agent; whoever waits on it does not read from it, `drive` does.
  virtual int wait_fd() const { return -1; }
  // Work accepted and not yet completed elsewhere (by a device): there is something to wait for.
  virtual bool waiting() const { return false; }
  // Why it completes everything as lost, in some words: "it has answered nothing for 60 s"; empty where it
  // does not, or does not know.
  virtual std::string lost_because() const { return {}; }
};

}  // namespace tierd
