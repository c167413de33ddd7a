// The interface that the agent needs of a GPU: memory that only the device reaches, and two engines that work
// side by side. A backend is one implementation.
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

// A message under way, with the time since which it has been waiting.
struct DeviceRequest {
  Message message;
  Payload payload;
  uint64_t since_ns = 0;
};

class Device : public Products {
 public:
  enum class Engine : uint8_t { compute, copy };
  static constexpr size_t kEngines = 2;

  // The name in reports.
  virtual std::string backend() const = 0;
  // Writes to the device's memory. [before the first request]
  virtual void load(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Begins a request on an engine that is idle. Never waits.
  virtual void begin(Engine engine, const DeviceRequest& request) = 0;
  // Returns the completion of the request that the engine has under way, once the request has ended: its
  // effects are complete then, and its gives are in the registered activations. Never waits for the device.
  virtual std::optional<Done> over(Engine engine) = 0;
  // Returns whether the caller should poll the engine again at once: its request will probably end before
  // parking would pay, and the descriptor will not signal that end.
  virtual bool soon(Engine) const { return false; }
  // A descriptor that turns readable when a request that was begun has ended, or -1.
  virtual int wait_fd() const { return -1; }
  virtual AgentCounts counts() const = 0;
  // The path of direct reads; NULL: the device has none.
  virtual DirectPath* direct() { return nullptr; }
};

}  // namespace tierd
