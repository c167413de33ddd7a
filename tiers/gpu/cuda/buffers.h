// Memory of the device, memory of the host that the device's engines reach, streams and events, each freed
// with its owner.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tierd::cuda {

struct FreeDevice {
  void operator()(std::byte* p) const { (void)cudaFree(p); }
};
struct FreePinned {
  void operator()(std::byte* p) const { (void)cudaFreeHost(p); }
};
using DeviceBytes = std::unique_ptr<std::byte, FreeDevice>;
using PinnedBytes = std::unique_ptr<std::byte, FreePinned>;

// Nothing is allocated for no bytes.
inline cudaError_t allocate(uint64_t bytes, DeviceBytes& out) {
  void* p = nullptr;
  const cudaError_t error = bytes == 0 ? cudaSuccess : cudaMalloc(&p, bytes);
  out.reset(static_cast<std::byte*>(p));
  return error;
}
inline cudaError_t allocate(uint64_t bytes, PinnedBytes& out) {
  void* p = nullptr;
  const cudaError_t error = bytes == 0 ? cudaSuccess : cudaHostAlloc(&p, bytes, cudaHostAllocDefault);
  out.reset(static_cast<std::byte*>(p));
  return error;
}

// Allocates as much as the values take, and copies them there at once.
template <class T>
cudaError_t upload(std::span<const T> values, DeviceBytes& out) {
  const cudaError_t error = allocate(values.size_bytes(), out);
  if (error != cudaSuccess) return error;
  return cudaMemcpy(out.get(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice);
}

// The device says something in a word of pinned memory. The host clears it while nothing of the device's that
// writes there is queued, and looks when that is over.
class Flag {
 public:
  cudaError_t create() {
    const cudaError_t error = allocate(sizeof(uint32_t), word_);
    clear();
    return error;
  }
  uint32_t* there() const { return reinterpret_cast<uint32_t*>(word_.get()); }
  void clear() {
    if (word_) *static_cast<volatile uint32_t*>(there()) = 0;
  }
  bool set() const { return word_ && *static_cast<const volatile uint32_t*>(there()) != 0; }

 private:
  PinnedBytes word_;
};

// Grows to hold what is asked for; what was there is lost. Nothing uses it meanwhile.
template <class Bytes>
class Growing {
 public:
  std::byte* data() const { return bytes_.get(); }
  cudaError_t hold(uint64_t bytes) {
    if (bytes <= size_) return cudaSuccess;
    bytes_.reset();
    size_ = 0;
    uint64_t size = kLeast;
    while (size < bytes) size *= 2;
    const cudaError_t error = allocate(size, bytes_);
    if (error == cudaSuccess) size_ = size;
    return error;
  }

 private:
  static constexpr uint64_t kLeast = 64 << 10;
  Bytes bytes_;
  uint64_t size_ = 0;
};

class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }
  cudaError_t create() { return cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() {
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
  }
  cudaError_t create() { return cudaEventCreateWithFlags(&event_, cudaEventDisableTiming); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace tierd::cuda
