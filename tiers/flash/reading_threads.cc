#include "tiers/flash/reading_threads.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/take_first.h"
#include "core/base/wake_signal.h"

namespace tierd {
namespace {

class ReadingThreads final : public BlockDevice {
 public:
  ReadingThreads(std::string name, uint32_t depth, ReadCall read)
      : name_(std::move(name)), read_(std::move(read)), depth_(depth) {}

  // Throws std::system_error if a thread cannot be created.
  void start(uint32_t threads, const std::function<void()>& begin) {
    for (uint32_t i = 0; i < std::min(depth_, threads); ++i) {
      threads_.emplace_back([this, begin] {
        if (begin) begin();
        serve();
      });
    }
  }

  // Waits for reads that have started, since they write into the caller's memory; queued ones are dropped.
  ~ReadingThreads() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
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
    {
      const std::lock_guard lock(mutex_);
      queue_.insert(queue_.end(), unflushed_.begin(), unflushed_.end());
    }
    unflushed_.size() == 1 ? wake_.notify_one() : wake_.notify_all();
    unflushed_.clear();
  }

  size_t poll(std::span<DeviceDone> done) override {
    const std::lock_guard lock(mutex_);
    const size_t n = take_first(done_, done);
    if (n == 0) return 0;
    in_flight_ -= static_cast<uint32_t>(n);
    if (done_.empty()) (void)event_.take();
    return n;
  }

  int wait_fd() const override { return event_.fd(); }
  // pread reads into any memory, so nothing is pinned.
  void register_memory(std::span<std::byte>) override {}
  bool registered() const override { return false; }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      const DeviceRead read = queue_.front();
      queue_.pop_front();
      lock.unlock();
      const int32_t result = read_(read);
      lock.lock();
      done_.push_back({.token = read.token, .result = result});
      // Signalled under the lock, so that the descriptor is readable exactly while `done_` is not empty.
      if (done_.size() == 1) event_.raise();
    }
  }

  const std::string name_;
  const ReadCall read_;
  WakeSignal event_;
  const uint32_t depth_;
  uint32_t in_flight_ = 0;  // pushed and not yet polled
  std::vector<DeviceRead> unflushed_;

  std::mutex mutex_;  // protects all members below
  std::condition_variable wake_;
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
    return Error{Code::io_error, path, std::string("cannot start a thread for reading: ") + error.what()};
  }
}

}  // namespace tierd
