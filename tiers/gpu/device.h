// What the agent needs of a GPU: memory that nobody else reaches, and two engines that work side by side. A
// backend is one kind of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/agent/agent_entry.h"
#include "core/agent/counts.h"
#include "core/agent/message.h"
#include "tiers/gpu/direct_path.h"

namespace tierd {

// A message on its way, with the time since which it has been waiting.
struct DeviceRequest {
  Message message;
  Payload payload;
  uint64_t since_ns = 0;
};

class Device : public Products {
 public:
  enum class Engine : uint8_t { compute, copy };
  static constexpr size_t kEngines = 2;

  // Names it in reports.
  virtual std::string backend() const = 0;
  // Writes to its memory. [before the first request]
  virtual void load(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Begins a request on an engine that has nothing under way. Never waits.
  virtual void begin(Engine engine, const DeviceRequest& request) = 0;
  // What became of the request that the engine has under way, once it is over: effects are there then, what
  // was to be given is in the registered activations. Never waits for the device.
  virtual std::optional<Done> over(Engine engine) = 0;
  // Whether what the engine has under way is to be looked at again at once: it is likely to be over before it
  // would be worth to park, and the descriptor would not tell of it.
  virtual bool soon(Engine) const { return false; }
  // Turns readable when something that was begun is over, or -1.
  virtual int wait_fd() const { return -1; }
  virtual AgentCounts counts() const = 0;
  // By which it reads directly; NULL: it cannot.
  virtual DirectPath* direct() { return nullptr; }
};

}  // namespace tierd
