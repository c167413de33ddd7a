// Device memory, host memory that the device reaches, streams and events, each freed by its destructor.
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

// For 0 bytes nothing is allocated.
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

// Allocates device memory for the values and copies them there.
template <class T>
cudaError_t upload(std::span<const T> values, DeviceBytes& out) {
  const cudaError_t error = allocate(values.size_bytes(), out);
  if (error != cudaSuccess) return error;
  return cudaMemcpy(out.get(), values.data(), values.size_bytes(), cudaMemcpyHostToDevice);
}

// A word of pinned memory that kernels set. The host clears it while no kernel that may set it is queued, and
// reads it after they have ended.
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

// A buffer that grows on demand; growing loses its contents. Growing requires that nothing uses the buffer.
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
