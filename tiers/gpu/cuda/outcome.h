// Errors of the CUDA runtime, and their text for log lines.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/base/result.h"

namespace tierd::cuda {

// "cudaErrorMemoryAllocation: out of memory"
inline std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

// Returns whether the device still answers after an error: after some errors every later call fails.
inline bool answers(cudaStream_t stream) {
  (void)cudaGetLastError();
  const cudaError_t state = cudaStreamQuery(stream);
  (void)cudaGetLastError();
  return state == cudaSuccess || state == cudaErrorNotReady;
}

// The first error of a sequence of calls; calls after it are skipped.
class Outcome {
 public:
  bool ok() const { return error_ == cudaSuccess; }
  cudaError_t error() const { return error_; }
  // Calls if no call has failed so far, and keeps the result.
  template <class Call>
  void then(const Call& call) {
    if (ok()) error_ = call();
  }
  void note(cudaError_t error) {
    if (ok()) error_ = error;
  }
  void clear() { error_ = cudaSuccess; }

 private:
  cudaError_t error_ = cudaSuccess;
};

}  // namespace tierd::cuda
