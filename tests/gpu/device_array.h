// Device arrays for tests of kernels. The included <cuda_runtime.h> decides whether they are on a GPU or on
// the emulated device (cuda_on_host).
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

#include "core/base/random.h"
#include "core/model/layout/row_group.h"
#include "tiers/gpu/cuda/buffers.h"

namespace tierd::cuda {

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : size_(values.size()) {
    EXPECT_EQ(allocate(size_ * sizeof(T) + kBehind, bytes_), cudaSuccess);
    if (size_ == 0) return;
    EXPECT_EQ(cudaMemcpy(bytes_.get(), values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  T* get() const { return reinterpret_cast<T*>(bytes_.get()); }
  // Waits for all queued work, then returns the values.
  std::vector<T> read() const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<T> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), bytes_.get(), size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  static constexpr size_t kBehind = 64;  // reads of 16 bytes may pass a row's end, as in an arena
  DeviceBytes bytes_;
  size_t size_;
};

class KernelTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(stream_.create(), cudaSuccess); }
  cudaStream_t stream() const { return stream_.get(); }
  std::vector<float> draw(size_t n, float scale = 1) {
    std::vector<float> values(n);
    for (float& value : values) value = random_.symmetric() * scale;
    return values;
  }
  Random random_{7};

 private:
  Stream stream_;
};

// Expects |got - expected| within the float error of a sum whose products add up to `magnitude`.
inline void expect_near(float got, double expected, double magnitude, const char* what) {
  EXPECT_LE(std::abs(double{got} - expected), 1e-6 + 2e-6 * magnitude) << what;
}

}  // namespace tierd::cuda
