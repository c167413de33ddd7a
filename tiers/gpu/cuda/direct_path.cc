#include "tiers/gpu/cuda/direct_path.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/log.h"
#include "tiers/gpu/cuda/announce.h"
#include "tiers/gpu/cuda/cufile.h"

namespace tierd::cuda {
namespace {

class FirstLoadCheck final : public LandedCheck {
 public:
  explicit FirstLoadCheck(int ordinal) : ordinal_(ordinal) {}

  Found check(uint32_t number, const ExtentRef& extent, const std::byte* at) override {
    if (number >= checked_.size()) checked_.resize(number + 1u);
    if (checked_[number]) return Found::unchecked;
    Outcome outcome;
    outcome.then([&] { return cudaSetDevice(ordinal_); });
    outcome.then([&] { return back_.hold(extent.bytes); });
    outcome.then([&] { return cudaMemcpy(back_.data(), at, extent.bytes, cudaMemcpyDeviceToHost); });
    if (!outcome.ok()) {
      (void)cudaGetLastError();  // a lasting error shows at the next use of the device
      return Found::unchecked;
    }
    if (checksum({back_.data(), extent.bytes}) != extent.checksum) return Found::wrong;
    checked_[number] = true;
    return Found::right;
  }

 private:
  const int ordinal_;
  std::vector<bool> checked_;  // [extents]
  Growing<PinnedBytes> back_;
};

}  // namespace

Result<std::unique_ptr<CudaDirectPath>> CudaDirectPath::create(Target target) {
  std::unique_ptr<CudaDirectPath> path(new CudaDirectPath(std::move(target)));
  path->rung_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!path->rung_.open()) return Error{Code::io_error, "gpu", std::strerror(errno)};
  Outcome outcome;
  outcome.then([&] { return path->copying_.create(); });
  outcome.then([&] { return path->announcing_.create(); });
  if (!outcome.ok())
    return Error{Code::unsupported, path->target_.name, "cannot be used (" + text_of(outcome.error()) + ")"};
  return path;
}

Result<DirectPath::OwnReads> CudaDirectPath::open(const std::string& path) {
  if (target_.cufile.empty()) return Error{Code::unsupported, path, "no library of cuFile is named"};
  TIERD_ASSIGN(const CuFile* const library, CuFile::load(target_.cufile));
  OwnReads reads;
  reads.way = "cuFile";
  reads.memory = target_.memory;
  TIERD_ASSIGN(reads.device, open_with_cufile(*library, path, target_.ordinal, target_.map));
  reads.check = std::make_unique<FirstLoadCheck>(target_.ordinal);
  return reads;
}

// Pins the memory: the driver copies unpinned memory through a buffer of its own, in pieces.
DirectPath::Staging CudaDirectPath::stage(std::span<std::byte> memory) {
  Outcome outcome;
  outcome.then([&] { return cudaSetDevice(target_.ordinal); });
  outcome.then([&] {
    return cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable | cudaHostRegisterMapped);
  });
  if (outcome.ok()) {
    pinned_ = memory;
    return {.way = "staged through pinned memory"};
  }
  (void)cudaGetLastError();
  return {.way = "staged through memory that is not pinned", .why = text_of(outcome.error())};
}

void CudaDirectPath::release() {
  (void)cudaSetDevice(target_.ordinal);
  (void)cudaDeviceSynchronize();
  under_way_.clear();
  if (!pinned_.empty()) (void)cudaHostUnregister(pinned_.data());
  pinned_ = {};
}

Event* CudaDirectPath::take_event(Outcome& outcome) {
  if (free_events_.empty()) {
    Event& made = events_.emplace_back();
    outcome.then([&] { return made.create(); });
    if (made.get() != nullptr) return &made;
    events_.pop_back();
    return nullptr;
  }
  Event* const event = free_events_.back();
  free_events_.pop_back();
  return event;
}

void CudaDirectPath::begin(uint64_t token, std::span<const Copy> copies) {
  UnderWay& read = under_way_.emplace_back(UnderWay{.copied = {.token = token}});
  Outcome outcome;
  outcome.note(cudaSetDevice(target_.ordinal));
  Event* const over = take_event(outcome);
  bool queued = false;
  for (const Copy& copy : copies) {
    if (!target_.map(target_.memory.subspan(copy.to, copy.bytes))) {
      read.copied.status = DoneStatus::no_space;
      break;
    }
    outcome.then([&] {
      queued = true;
      return cudaMemcpyAsync(target_.memory.data() + copy.to, copy.from, copy.bytes, cudaMemcpyHostToDevice,
                             copying_.get());
    });
  }
  if (!outcome.ok()) fail(read.copied, outcome.error());
  // The event is recorded after an error too: copies that were queued before it still read the bounce buffer.
  const cudaError_t recorded = queued ? cudaEventRecord(over->get(), copying_.get()) : cudaSuccess;
  if (recorded != cudaSuccess) {
    fail(read.copied, recorded);
    (void)cudaStreamSynchronize(copying_.get());  // no event will tell when the bounce buffer has been read
  }
  if (!queued || recorded != cudaSuccess) {
    if (over != nullptr) free_events_.push_back(over);
    return ring(rung_.get());
  }
  read.over = over;
  announce(announcing_.get(), over->get(), rung_.get());
}

void CudaDirectPath::fail(Copied& copied, cudaError_t error) {
  lost_ = !answers(copying_.get()) || lost_;
  copied.status = lost_ ? DoneStatus::lost : DoneStatus::internal;
  copied.error = static_cast<uint16_t>(error);
  if (std::exchange(said_, true)) return;
  say(target_.name + " failed to copy what was read: " + text_of(error));
}

size_t CudaDirectPath::poll(std::span<Copied> copied) {
  uint64_t rings = 0;
  (void)!::read(rung_.get(), &rings, sizeof rings);
  size_t n = 0;
  for (; n != copied.size() && !under_way_.empty(); ++n) {
    UnderWay& read = under_way_.front();
    if (read.over != nullptr && !lost_) {
      const cudaError_t state = cudaEventQuery(read.over->get());
      if (state == cudaErrorNotReady) break;
      if (state != cudaSuccess) fail(read.copied, state);
    }
    if (lost_) read.copied.status = DoneStatus::lost;
    if (read.over != nullptr) free_events_.push_back(read.over);
    copied[n] = read.copied;
    under_way_.pop_front();
  }
  // `copied` may have had too little room for all completions.
  if (n == copied.size() && !under_way_.empty()) ring(rung_.get());
  return n;
}

}  // namespace tierd::cuda
