// Memory of the host that the device reads in place. The pages that a pool's owner keeps behind its addresses
// are cut into pieces; a piece is registered with the device when a move first reads it, and unregistered
// before its pages go.
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
  // Bytes of a piece. The thread that drives the agent waits while a piece is registered: an estimated ten
  // milliseconds or so, not measured yet.
  static constexpr uint64_t kPieceBytes = 32 << 20;

  // `table`, a table of the configuration, begins the log line of a failed registration. `pools` must outlive
  // the object. [set-up]
  RegisteredMemory(PoolTable& pools, int device, std::string table);
  // Unregisters everything. No queued work may read from it any more.
  ~RegisteredMemory() override;
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  // Appends the fetches of `bytes` bytes of the host to memory + `to` on the device, split where pieces end.
  // Returns false and appends nothing if a piece is not registered and cannot be. `from` and `to` are
  // multiples of 16. [the thread that drives the device's agent]
  bool reach(const std::byte* from, uint64_t bytes, uint64_t to, std::vector<Fetch>& fetches);

  // Between these calls the device may read the appended fetches. No registered page may go meanwhile: the
  // kernel guarantees it to each owner of a memory, and forget() checks it.
  void begin_reading() { ++reading_; }
  void end_reading() { --reading_; }

  // [the thread that drives the memory's owner]
  void pages_kept(std::span<const std::byte> memory, std::span<const PageRange> kept) override;

 private:
  struct Piece {
    enum class State : uint8_t { fresh, registered, refused };
    uintptr_t end = 0;
    State state = State::fresh;
    const std::byte* there = nullptr;  // the device's address of it
  };
  using Pieces = std::map<uintptr_t, Piece>;  // by their first address

  Pieces::iterator piece_of(uintptr_t at);
  bool enter(Pieces::iterator piece);
  void forget(Pieces::iterator first, Pieces::iterator last);

  PoolTable& pools_;
  const int device_;
  const std::string table_;
  Pieces pieces_;
  Pieces::iterator last_ = pieces_.end();  // neighbours in a move are mostly in one piece
  std::atomic<uint32_t> reading_ = 0;
  bool told_ = false;
};

}  // namespace tierd::cuda
