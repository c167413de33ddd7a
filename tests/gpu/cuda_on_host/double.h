// A device emulated by this process: the runtime calls of tiers/gpu/cuda over host memory, streams whose work
// is done in order, at once or late, and errors where a test wants them. It models no GPU's speed, and no
// report calls it a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

#include "tests/gpu/cuda_on_host/fibers.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorNoDevice = 100,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorLaunchOutOfResources = 701,
  cudaErrorUnknown = 999,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDisableTiming = 2;
inline constexpr unsigned cudaHostAllocDefault = 0;
inline constexpr unsigned cudaHostRegisterPortable = 1;
inline constexpr unsigned cudaHostRegisterMapped = 2;

namespace on_host {
class Stream;
class Event;
class Graph;
class Executable;
}  // namespace on_host
using cudaStream_t = on_host::Stream*;
using cudaEvent_t = on_host::Event*;
using cudaGraph_t = on_host::Graph*;
using cudaGraphExec_t = on_host::Executable*;
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
using cudaHostFn_t = void (*)(void*);

struct cudaDeviceProp {
  char name[256];
  int major;
  int minor;
};

enum cudaDriverEntryPointQueryResult {
  cudaDriverEntryPointSuccess,
  cudaDriverEntryPointSymbolNotFound,
};
inline constexpr unsigned long long cudaEnableDefault = 0;

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMemGetInfo(size_t* free, size_t* whole);
cudaError_t cudaMalloc(void** p, size_t bytes);
cudaError_t cudaFree(void* p);
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* p);
// Stricter than CUDA: registering twice, or unregistering in part or unregistered memory, ends the test.
cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* p);
// Only on_host::mapped() can translate the address.
cudaError_t cudaHostGetDevicePointer(void** there, void* p, unsigned flags);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
// Work queued in between is recorded, not done, until the graph is launched.
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemset(void* to, int value, size_t bytes);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument);
cudaError_t cudaGetLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* result);

namespace on_host {

// The behaviour of the device. A test sets it before it creates a device.
struct Behaviour {
  // 0: queued work is done at once. Else the seed of the draws by which some of it is done at each query.
  uint64_t late = 0;
  uint64_t memory_bytes = uint64_t{1} << 40;    // of the device
  uint64_t lockable_bytes = uint64_t{1} << 40;  // of host memory that can be registered
  int devices = 1;
  int major = 9;
  cudaError_t driver = cudaSuccess;  // the result of counting devices
  // The launch that fails, or the event query at which the device is lost (1: the first; 0: none).
  uint32_t launch_fails = 0;  // only that one
  bool captures = true;       // streams can be captured
  uint32_t lost_at_look = 0;  // every call fails from then on
};
void behave(const Behaviour& behaviour);
// Counts since behave().
uint32_t launches();  // of kernels; a captured one counts once
uint32_t graph_launches();
// Makes a kernel launch fail, counted from now on (1: the next).
void fail_launch(uint32_t launch);
uint32_t looks();
uint64_t bytes_in_use();
// Returns the registered bytes of host memory. Memory still registered at exit aborts the program.
uint64_t registered_bytes();
// Returns the host's address of registered memory that a kernel reads. Ends the test if it is not registered.
const std::byte* mapped(const std::byte* there, size_t bytes);
// Ends the test if any of this memory is registered: it is about to be returned to the system.
void check_given_back(const void* p, size_t bytes);

cudaError_t queue_launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> body);
template <class... P>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, P... args) {
  return queue_launch(stream, grid, block,
                      [kernel, held = std::tuple<P...>(std::move(args)...)] { std::apply(kernel, held); });
}

}  // namespace on_host
