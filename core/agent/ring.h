// A bounded ring between one producing and one consuming thread.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <vector>

namespace tierd {

template <class T>
class SpscRing {
 public:
  // Holds at least `capacity` elements.
  explicit SpscRing(size_t capacity) : slots_(std::bit_ceil(capacity + 1)), mask_(slots_.size() - 1) {}

  // [producer] Returns false if full.
  bool push(const T& value) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (((tail + 1) & mask_) == head_.load(std::memory_order_acquire)) return false;
    slots_[tail] = value;
    tail_.store((tail + 1) & mask_, std::memory_order_release);
    return true;
  }
  // [consumer] Returns false if empty.
  bool pop(T& value) {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    value = slots_[head];
    head_.store((head + 1) & mask_, std::memory_order_release);
    return true;
  }
  // [either] A snapshot, exact only for the caller's own side.
  bool empty() const {
    return head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_acquire);
  }

 private:
  static constexpr size_t kCacheLine = 64;
  std::vector<T> slots_;
  size_t mask_;
  alignas(kCacheLine) std::atomic<size_t> head_{0};
  alignas(kCacheLine) std::atomic<size_t> tail_{0};
};

}  // namespace tierd
