// Reads through io_uring: one system call starts a batch and collects the reads that have finished since the
// last one. Without SQPOLL, whose kernel thread would take a core from the computation. If the kernel
// supports it (6.1), the ring declares a single issuing thread (SINGLE_ISSUER) and defers completions until
// that thread enters the kernel (DEFER_TASKRUN), instead of an interrupt for each read; the eventfd is then
// signalled once a batch.
#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "core/base/check.h"
#include "tiers/flash/device_kinds.h"

namespace tierd {
namespace {

// The kernel transfers less than 2 GiB per call; the caller continues a longer read.
constexpr size_t kMostBytes = size_t{1} << 30;
constexpr uint32_t kIdlePollsPerLook = 16;
// The ring is enabled by the first thread that uses it.
constexpr unsigned kOneThread = IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER |
                                IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;

class UringDevice final : public BlockDevice {
 public:
  UringDevice(Descriptor file, Descriptor event, uint32_t depth, const io_uring& ring)
      : file_(std::move(file)), event_(std::move(event)), depth_(depth), ring_(ring) {
    const int fd = file_.get();
    fixed_file_ = io_uring_register_files(&ring_, &fd, 1) == 0;
  }

  // Waits for the reads in flight, which the kernel may still be writing into the caller's memory. Must run
  // on the thread that issued them: no other one receives completions (AgentThread guarantees it).
  ~UringDevice() override {
    while (in_flight_ > queued_) {
      io_uring_cqe* cqe = nullptr;
      const int status = io_uring_wait_cqe(&ring_, &cqe);
      TIERD_CHECK_MSG(status != -EEXIST, "a device with reads in flight ends in a thread that did not ask");
      if (status != 0) continue;  // EINTR
      io_uring_cqe_seen(&ring_, cqe);
      --in_flight_;
    }
    io_uring_queue_exit(&ring_);
  }

  std::string_view name() const override { return "io_uring"; }
  uint32_t depth() const override { return depth_; }

  bool push(const DeviceRead& read) override {
    if (in_flight_ == depth_) return false;
    io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
    TIERD_CHECK(sqe != nullptr);  // the ring has at least `depth_` entries
    const auto bytes = static_cast<unsigned>(std::min(read.into.size(), kMostBytes));
    const int fd = fixed_file_ ? 0 : file_.get();
    if (pinned(read.into)) {
      io_uring_prep_read_fixed(sqe, fd, read.into.data(), bytes, read.offset, 0);
    } else {
      io_uring_prep_read(sqe, fd, read.into.data(), bytes, read.offset);
    }
    if (fixed_file_) io_uring_sqe_set_flags(sqe, IOSQE_FIXED_FILE);
    io_uring_sqe_set_data64(sqe, read.token);
    ++in_flight_;
    ++queued_;
    return true;
  }

  void flush() override {
    enable();
    flushed_ = true;
    submit();
  }

  size_t poll(std::span<DeviceDone> done) override {
    if (flushed_) submit();
    // The eventfd is drained before completions are collected, so that a read that finishes in between
    // signals again. A signal may also arrive just after its completion was collected, so an idle poll drains
    // it too: only now and then, since that is a system call.
    if (io_uring_cq_ready(&ring_) != 0 || deferred() || ++idle_polls_ % kIdlePollsPerLook == 0) {
      uint64_t signals = 0;
      (void)!::read(event_.get(), &signals, sizeof signals);
    }
    // One call collects at most 20 (kernel 6.12).
    for (unsigned ready = 0; deferred() && ready < done.size();) {
      io_uring_get_events(&ring_);
      const unsigned now = io_uring_cq_ready(&ring_);
      if (now == ready) break;
      ready = now;
    }
    size_t n = 0;
    unsigned head = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      if (n == done.size()) break;
      done[n++] = {.token = cqe->user_data, .result = cqe->res};
    }
    io_uring_cq_advance(&ring_, static_cast<unsigned>(n));
    in_flight_ -= static_cast<uint32_t>(n);
    if (io_uring_cq_ready(&ring_) != 0) {
      const uint64_t one = 1;
      (void)!::write(event_.get(), &one, sizeof one);
    }
    return n;
  }

  int wait_fd() const override { return event_.get(); }

  void register_memory(std::span<std::byte> memory) override {
    if (!pinned_.empty()) io_uring_unregister_buffers(&ring_);
    pinned_ = {};
    const iovec buffer = {.iov_base = memory.data(), .iov_len = memory.size()};
    if (io_uring_register_buffers(&ring_, &buffer, 1) == 0) pinned_ = memory;
  }
  bool registered() const override { return !pinned_.empty(); }

 private:
  // The first thread that calls it becomes the single issuing thread.
  void enable() {
    if ((ring_.flags & IORING_SETUP_R_DISABLED) == 0) return;
    // The same as io_uring_enable_rings, which liburing.so 2.3 does not export.
    TIERD_CHECK(::syscall(SYS_io_uring_register, ring_.ring_fd, IORING_REGISTER_ENABLE_RINGS, nullptr, 0) ==
                0);
    ring_.flags &= ~unsigned{IORING_SETUP_R_DISABLED};
  }
  // Returns whether the kernel has completions that it reports only on entry.
  bool deferred() const {
    return (std::atomic_ref<unsigned>(*ring_.sq.kflags).load(std::memory_order_relaxed) &
            IORING_SQ_TASKRUN) != 0;
  }

  bool pinned(std::span<std::byte> into) const {
    return into.data() >= pinned_.data() && into.data() + into.size() <= pinned_.data() + pinned_.size();
  }

  // The kernel may accept only some (EAGAIN, EBUSY, EINTR): the others wait for the next flush or poll.
  void submit() {
    const int taken = io_uring_submit(&ring_);
    if (taken > 0) queued_ -= static_cast<uint32_t>(taken);
    if (queued_ == 0) flushed_ = false;
  }

  Descriptor file_;
  Descriptor event_;
  const uint32_t depth_;
  io_uring ring_;
  std::span<std::byte> pinned_;
  uint32_t in_flight_ = 0;  // pushed and not yet polled
  uint32_t queued_ = 0;     // of those in flight, not yet accepted by the kernel
  bool flushed_ = false;    // the caller has asked to start the queued ones
  uint32_t idle_polls_ = 0;
  bool fixed_file_ = false;
};

// Tests whether reads can be started: a sandbox may allow a ring to be created but not entered. It uses a
// ring of its own, because only the first thread that enters a ring may use it.
int try_to_enter() {
  io_uring ring{};
  if (const int status = io_uring_queue_init(1, &ring, 0); status != 0) return status;
  io_uring_prep_nop(io_uring_get_sqe(&ring));
  const int taken = io_uring_submit(&ring);
  io_uring_queue_exit(&ring);
  return std::min(taken, 0);
}

Error refused(const std::string& path, const char* what, int error) {
  return {Code::unsupported, path,
          std::string("io_uring refused by ") + what + ": " + std::generic_category().message(error)};
}

}  // namespace

Result<std::unique_ptr<BlockDevice>> make_uring_device(Descriptor& file, const std::string& path,
                                                       uint32_t depth) {
  Descriptor event(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!event.open()) return refused(path, "eventfd", errno);
  io_uring ring{};
  int status = io_uring_queue_init(depth, &ring, kOneThread);
  if (status == -EINVAL) status = io_uring_queue_init(depth, &ring, 0);  // a kernel before 6.1
  if (status != 0) return refused(path, "io_uring_setup", -status);
  if (status = try_to_enter(); status != 0) {
    io_uring_queue_exit(&ring);
    return refused(path, "io_uring_enter", -status);
  }
  if (status = io_uring_register_eventfd(&ring, event.get()); status != 0) {
    io_uring_queue_exit(&ring);
    return refused(path, "io_uring_register", -status);
  }
  return std::unique_ptr<BlockDevice>(
      std::make_unique<UringDevice>(std::move(file), std::move(event), depth, ring));
}

}  // namespace tierd
