// The device reads registered memory of the host where it lies. What a pool's owner keeps behind its
// addresses is cut into pieces, each of which is registered with the device when it is first moved from, and
// forgotten before its pages go.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/agent/pool.h"
#include "tiers/gpu/cuda/fetch.h"

namespace tierd::cuda {

class RegisteredMemory final : public PageListener {
 public:
  // Whoever drives the agent does nothing else while a piece is registered: that is expected to take some ten
  // milliseconds, which nobody has measured yet.
  static constexpr uint64_t kPieceBytes = 32 << 20;

  // `table` of the configuration begins the line that says that something cannot be registered. `pools`
  // outlives this. [set-up]
  RegisteredMemory(PoolTable& pools, int device, std::string table);
  // This forgets all. Nothing that was queued reads from it any more.
  ~RegisteredMemory() override;
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  // Appends what brings `bytes` of the host to memory + `to` of the device, cut where pieces end. False, and
  // nothing is appended, where they are not all registered, nor can be. `from` and `to` are multiples of 16.
  // [whoever drives the device's agent]
  bool reach(const std::byte* from, uint64_t bytes, uint64_t to, std::vector<Fetch>& fetches);

  // What was appended is being read from the first on, until the second. No page that is registered goes
  // meanwhile: that is the kernel's promise to whoever owns a memory, and it is checked.
  void begin_reading() { ++reading_; }
  void end_reading() { --reading_; }

  // [whoever drives the memory's owner]
  void pages_kept(std::span<const std::byte> memory, std::span<const PageRange> kept) override;

 private:
  struct Piece {
    enum class State : uint8_t { fresh, registered, refused };
    uintptr_t end = 0;
    State state = State::fresh;
    const std::byte* there = nullptr;  // its address for the device
  };
  using Pieces = std::map<uintptr_t, Piece>;  // by where they begin

  Pieces::iterator piece_of(uintptr_t at);
  bool enter(Pieces::iterator piece);
  void forget(Pieces::iterator first, Pieces::iterator last);

  PoolTable& pools_;
  const int device_;
  const std::string table_;
  Pieces pieces_;
  Pieces::iterator last_ = pieces_.end();  // neighbours in a move mostly lie in one piece
  std::atomic<uint32_t> reading_ = 0;
  bool told_ = false;
};

}  // namespace tierd::cuda
