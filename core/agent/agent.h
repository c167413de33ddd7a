// A tier agent: one memory and the only code that touches it. Single-threaded: the kernel calls `submit` and
// `poll`, the agent's thread `drive`. That is the kernel's thread unless the configuration gives the agent
// one (core/agent/agent_thread.h puts a queue in between; the agent itself never sees a second thread).
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
  // The most requests that may be in flight at once: the kernel's credits for this agent.
  virtual uint32_t credits() const = 0;

  // Accepts the message, or returns `busy` and keeps nothing. Never blocks. The memory that the payload
  // refers to is unchanged until the completion; the payload itself need not live so long.
  virtual Submit submit(const Message& message, const Payload& payload) = 0;
  // Does the work that is possible now and returns whether there was any. Never waits.
  virtual Drive drive() = 0;
  // Writes up to done.size() completions, exactly one for each accepted id. Returns their number.
  virtual size_t poll(std::span<Done> done) = 0;

  // Returns a descriptor that becomes readable when `drive` has work that no submit announced (device
  // completions), or -1. The agent owns it; a waiter does not read from it, `drive` does.
  virtual int wait_fd() const { return -1; }
  // Returns whether accepted work is pending elsewhere (in a device).
  virtual bool waiting() const { return false; }
  // Returns the reason for completing everything as lost, such as "it has answered nothing for 60 s"; empty
  // if the agent is not lost or does not know.
  virtual std::string lost_because() const { return {}; }
};

}  // namespace tierd
