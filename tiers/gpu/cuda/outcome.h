// What the CUDA runtime answers, in lines for a person.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/base/result.h"

namespace tierd::cuda {

// "cudaErrorMemoryAllocation: out of memory"
inline std::string text_of(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

// Whether the device answers after an error: some are the call's own, after others it answers nothing any
// more.
inline bool answers(cudaStream_t stream) {
  (void)cudaGetLastError();
  const cudaError_t state = cudaStreamQuery(stream);
  (void)cudaGetLastError();
  return state == cudaSuccess || state == cudaErrorNotReady;
}

// The first error of several calls that follow each other: what comes after one is not done.
class Outcome {
 public:
  bool ok() const { return error_ == cudaSuccess; }
  cudaError_t error() const { return error_; }
  // Calls where nothing has failed so far, and keeps what it answers.
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
