#include "tiers/flash/reading_threads.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/wake_signal.h"

namespace tierd {
namespace {

// The caller must not wait for a thread that holds the lock and has lost its core. So no thread makes a
// system call under the lock: raising the signal there wakes the caller on the very core that it takes over.
// Nor is there a condition variable, since notifying one can wait for the threads that are leaving it.
class ReadingThreads final : public BlockDevice {
 public:
  ReadingThreads(std::string name, uint32_t depth, ReadCall read)
      : name_(std::move(name)), read_(std::move(read)), depth_(depth) {}

  // Throws std::system_error when a thread cannot be had.
  void start(uint32_t threads, const std::function<void()>& begin) {
    for (uint32_t i = 0; i < std::min(depth_, threads); ++i) {
      threads_.emplace_back([this, begin] {
        if (begin) begin();
        serve();
      });
    }
  }

  // Reads already started are awaited, since they write into the caller's memory; queued ones are dropped.
  ~ReadingThreads() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    flushes_.fetch_add(1, std::memory_order_release);
    flushes_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  std::string_view name() const override { return name_; }
  uint32_t depth() const override { return depth_; }

  bool push(const DeviceRead& read) override {
    if (in_flight_ == depth_) return false;
    ++in_flight_;
    unflushed_.push_back(read);
    return true;
  }

  void flush() override {
    if (unflushed_.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      queue_.insert(queue_.end(), unflushed_.begin(), unflushed_.end());
    }
    flushes_.fetch_add(1, std::memory_order_release);
    unflushed_.size() == 1 ? flushes_.notify_one() : flushes_.notify_all();
    unflushed_.clear();
  }

  size_t poll(std::span<DeviceDone> done) override {
    // A thread announces its signal before it raises it: until all that were announced have been taken, the
    // descriptor may turn readable yet. The signal is taken before the look, so that none is lost.
    if (announced_.load(std::memory_order_acquire) != taken_) taken_ += event_.take();
    bool more = false;
    size_t n = 0;
    {
      const std::lock_guard lock(mutex_);
      n = std::min(done.size(), done_.size());
      std::copy_n(done_.begin(), n, done.begin());
      done_.erase(done_.begin(), done_.begin() + static_cast<ptrdiff_t>(n));
      more = !done_.empty();
    }
    in_flight_ -= static_cast<uint32_t>(n);
    if (more) signal();
    return n;
  }

  int wait_fd() const override { return event_.fd(); }
  // Nothing to pin: such calls take any memory.
  void register_memory(std::span<std::byte>) override {}
  bool registered() const override { return false; }

 private:
  void serve() {
    while (const std::optional<DeviceRead> read = next()) {
      const int32_t result = read_(*read);
      bool first = false;
      {
        const std::lock_guard lock(mutex_);
        first = done_.empty();
        done_.push_back({.token = read->token, .result = result});
      }
      if (first) signal();
    }
  }
  // Waits for a read. Nothing once the device goes.
  std::optional<DeviceRead> next() {
    while (true) {
      const uint32_t seen = flushes_.load(std::memory_order_acquire);
      {
        const std::lock_guard lock(mutex_);
        if (stop_) return std::nullopt;
        if (!queue_.empty()) {
          const DeviceRead read = queue_.front();
          queue_.pop_front();
          return read;
        }
      }
      flushes_.wait(seen, std::memory_order_acquire);
    }
  }
  // [any thread, without the lock]
  void signal() {
    announced_.fetch_add(1, std::memory_order_release);
    event_.raise();
  }

  const std::string name_;
  const ReadCall read_;
  WakeSignal event_;
  std::atomic<uint64_t> announced_ = 0;  // signals, raised or about to be
  uint64_t taken_ = 0;                   // of these
  const uint32_t depth_;
  uint32_t in_flight_ = 0;  // pushed and not yet polled
  std::vector<DeviceRead> unflushed_;

  std::atomic<uint32_t> flushes_ = 0;  // an idle thread waits for the next one
  std::mutex mutex_;                   // of all below
  std::deque<DeviceRead> queue_;
  std::vector<DeviceDone> done_;
  bool stop_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace

Result<std::unique_ptr<BlockDevice>> make_reading_threads(std::string name, const std::string& path,
                                                          uint32_t depth, uint32_t threads, ReadCall read,
                                                          std::function<void()> begin) {
  try {
    auto device = std::make_unique<ReadingThreads>(std::move(name), depth, std::move(read));
    device->start(threads, begin);
    return std::unique_ptr<BlockDevice>(std::move(device));
  } catch (const std::system_error& error) {
    return Error{Code::io_error, path, std::string("no thread for reading: ") + error.what()};
  }
}

}  // namespace tierd
