#include "core/agent/waiter.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <list>

#include "core/base/wake_signal.h"

namespace tierd {

struct Waiter::Impl {
  boost::asio::io_context context{1};
  struct Watched {
    boost::asio::posix::stream_descriptor descriptor;
    bool armed = false;
  };
  std::list<Watched> watched;
  WakeSignal stop_signal;
  std::atomic<bool> stop{false};
};

Waiter::Waiter() : impl_(std::make_unique<Impl>()) {
  watch(impl_->stop_signal.fd());
}

Waiter::~Waiter() {
  for (auto& w : impl_->watched) w.descriptor.release();
}

void Waiter::watch(int fd) {
  impl_->watched.push_back({boost::asio::posix::stream_descriptor(impl_->context, fd), false});
}

void Waiter::forget(int fd) {
  const auto of = std::ranges::find_if(impl_->watched,
                                       [fd](Impl::Watched& w) { return w.descriptor.native_handle() == fd; });
  if (of == impl_->watched.end()) return;
  of->descriptor.release();
  // The pending handler refers to the entry: run it before erasing the entry.
  impl_->context.restart();
  impl_->context.poll();
  impl_->watched.erase(of);
}

void Waiter::wait(uint64_t timeout_ns) {
  for (auto& w : impl_->watched) {
    if (w.armed) continue;
    w.armed = true;
    w.descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                            [&w](const boost::system::error_code&) { w.armed = false; });
  }
  impl_->context.restart();
  impl_->context.run_one_for(std::chrono::nanoseconds(timeout_ns));
}

void Waiter::stop() {
  impl_->stop.store(true, std::memory_order_release);
  impl_->stop_signal.raise();
}

bool Waiter::stopping() const {
  return impl_->stop.load(std::memory_order_acquire);
}

void Waiter::clear_stop() {
  (void)impl_->stop_signal.take();
  impl_->stop.store(false, std::memory_order_release);
}

}  // namespace tierd
