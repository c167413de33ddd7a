#include "tiers/gpu/cuda/registered_memory.h"

#include <algorithm>
#include <utility>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {
namespace {

void* address(uintptr_t at) {
  return reinterpret_cast<void*>(at);
}

}  // namespace

RegisteredMemory::RegisteredMemory(PoolTable& pools, int device, std::string table)
    : pools_(pools), device_(device), table_(std::move(table)) {
  pools.listen(*this);
}

RegisteredMemory::~RegisteredMemory() {
  pools_.listen_no_more(*this);
  forget(pieces_.begin(), pieces_.end());
}

// Returns the piece that contains this byte, or the end.
RegisteredMemory::Pieces::iterator RegisteredMemory::piece_of(uintptr_t at) {
  if (last_ != pieces_.end() && last_->first <= at && at < last_->second.end) return last_;
  auto found = pieces_.upper_bound(at);
  if (found == pieces_.begin() || (--found)->second.end <= at) return pieces_.end();
  return last_ = found;
}

bool RegisteredMemory::reach(const std::byte* from, uint64_t bytes, uint64_t to,
                             std::vector<Fetch>& fetches) {
  const size_t before = fetches.size();
  const auto end = reinterpret_cast<uintptr_t>(from) + bytes;
  for (uintptr_t at = end - bytes; at < end;) {
    const auto piece = piece_of(at);
    if (piece == pieces_.end() || !enter(piece)) {
      fetches.resize(before);
      return false;
    }
    const uint64_t part = std::min(end, piece->second.end) - at;
    fetches.push_back({piece->second.there + (at - piece->first), to, part});
    at += part;
    to += part;
  }
  return true;
}

// Registers a piece at its first use. Returns whether the piece is registered.
bool RegisteredMemory::enter(Pieces::iterator piece) {
  auto& [begin, p] = *piece;
  if (p.state != Piece::State::fresh) return p.state == Piece::State::registered;
  void* there = nullptr;
  cudaError_t error =
      cudaHostRegister(address(begin), p.end - begin, cudaHostRegisterPortable | cudaHostRegisterMapped);
  if (error == cudaSuccess) {
    error = cudaHostGetDevicePointer(&there, address(begin), 0);
    if (error != cudaSuccess) (void)cudaHostUnregister(address(begin));
  }
  p.state = error == cudaSuccess ? Piece::State::registered : Piece::State::refused;
  p.there = static_cast<const std::byte*>(there);
  if (error == cudaSuccess) return true;
  (void)cudaGetLastError();
  if (!std::exchange(told_, true)) {
    say(table_ + ": memory of the host cannot be registered with the device (" + text_of(error) +
        "); neurons are moved from there through pinned blocks, which is slower");
  }
  return false;
}

// Unregisters the pieces and erases them. A lost device has dropped its registrations itself.
void RegisteredMemory::forget(Pieces::iterator first, Pieces::iterator last) {
  bool any = false;
  for (auto piece = first; piece != last; ++piece) {
    if (piece->second.state != Piece::State::registered) continue;
    TIERD_CHECK_MSG(reading_ == 0, "pages are unregistered while a move reads from them");
    // This thread may not be the one that registered them.
    if (!std::exchange(any, true)) (void)cudaSetDevice(device_);
    (void)cudaHostUnregister(address(piece->first));
  }
  if (any) (void)cudaGetLastError();
  pieces_.erase(first, last);
  last_ = pieces_.end();
}

// Pieces with the same bounds as before stay registered. Refused pieces are tried once more.
void RegisteredMemory::pages_kept(std::span<const std::byte> memory, std::span<const PageRange> kept) {
  const auto first = reinterpret_cast<uintptr_t>(memory.data());
  std::vector<std::pair<uintptr_t, uintptr_t>> cut;
  for (const PageRange& range : kept) {
    const uintptr_t end = align_down(first + range.end, kPageBytes);
    for (uintptr_t begin = align_up(first + range.begin, kPageBytes); begin < end;) {
      const uintptr_t next = std::min(end, (begin / kPieceBytes + 1) * kPieceBytes);
      cut.emplace_back(begin, next);
      begin = next;
    }
  }
  auto wanted = cut.begin();
  for (auto piece = pieces_.lower_bound(first);
       piece != pieces_.end() && piece->first < first + memory.size();) {
    while (wanted != cut.end() && wanted->first < piece->first) ++wanted;
    const bool stays = piece->second.state == Piece::State::registered && wanted != cut.end() &&
                       *wanted == std::pair(piece->first, piece->second.end);
    const auto next = std::next(piece);
    if (!stays) forget(piece, next);
    piece = next;
  }
  for (const auto& [begin, end] : cut) pieces_.try_emplace(begin, Piece{.end = end});
}

}  // namespace tierd::cuda
