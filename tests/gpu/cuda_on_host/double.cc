#include "tests/gpu/cuda_on_host/double.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/gpu/cuda_on_host/cuda.h"

namespace on_host {

// The work captured from a stream.
class Graph {
 public:
  std::vector<std::function<void()>> works;
};
class Executable {
 public:
  Graph graph;
};

// A queue of work done in order. An entry that is not possible yet blocks those behind it.
class Stream {
 public:
  struct Entry {
    std::function<bool()> possible;
    std::function<void()> work;
  };
  std::deque<Entry> queue;
  std::unique_ptr<Graph> capturing;

  bool step() {
    if (queue.empty() || (queue.front().possible && !queue.front().possible())) return false;
    const Entry entry = std::move(queue.front());
    queue.pop_front();
    entry.work();
    return true;
  }
};

class Event {
 public:
  uint64_t recorded = 0;  // number of records
  uint64_t over = 0;
};

namespace {

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "the double of CUDA: %s\n", what);
  std::abort();
}

// Device addresses of registered memory are the host's plus this offset; nothing is mapped there.
constexpr uintptr_t kMapped = uintptr_t{1} << 62;
constexpr uintptr_t kHostPage = 4096;

struct Device {
  ~Device() {
    if (!registered.empty()) refuse("memory is registered when the program ends");
  }
  // Returns the registered range that overlaps these bytes, or the end.
  std::map<uintptr_t, size_t>::iterator registered_at(uintptr_t begin, size_t size) {
    auto found = registered.lower_bound(begin + size);
    if (found == registered.begin() || (--found)->first + found->second <= begin) return registered.end();
    return found;
  }

  Behaviour behaviour;
  std::mt19937_64 lots{1};
  std::set<Stream*> streams;
  std::map<void*, size_t> allocated;
  std::map<uintptr_t, size_t> registered;  // registered host memory: address, bytes
  uint64_t bytes = 0;
  uint64_t handles = 0;
  uint32_t launches = 0;
  uint32_t graph_launches = 0;
  uint32_t looks = 0;
  bool lost = false;
  cudaError_t last = cudaSuccess;
};
Device& device() {
  static Device device;
  return device;
}

cudaError_t answer(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) device().last = error;
  return error;
}

void drain() {
  for (bool any = true; any;) {
    any = false;
    for (Stream* stream : device().streams) {
      while (stream->step()) any = true;
    }
  }
}

// Does some of the queued work, on drawn streams.
void go_on() {
  Device& d = device();
  std::vector<Stream*> order(d.streams.begin(), d.streams.end());
  std::sort(order.begin(), order.end());
  for (uint64_t n = d.lots() % 4; n != 0 && !order.empty(); --n) order[d.lots() % order.size()]->step();
}

cudaError_t queue(Stream* stream, std::function<void()> work, std::function<bool()> possible = {}) {
  if (device().lost) return answer(cudaErrorECCUncorrectable);
  if (stream->capturing) {
    if (possible) refuse("what waits for an event is captured");
    stream->capturing->works.push_back(std::move(work));
    return cudaSuccess;
  }
  stream->queue.push_back({std::move(possible), std::move(work)});
  if (device().behaviour.late == 0) drain();
  return cudaSuccess;
}

void* take(size_t bytes) {
  Device& d = device();
  if (d.bytes + bytes > d.behaviour.memory_bytes) return nullptr;
  constexpr size_t kAlignment = 256;
  void* const p = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  std::memset(p, 0xff, bytes);  // NaN, so that reads of unwritten memory show
  return p;
}

}  // namespace

void behave(const Behaviour& behaviour) {
  Device& d = device();
  d.behaviour = behaviour;
  d.lots.seed(behaviour.late);
  d.launches = d.graph_launches = d.looks = 0;
  d.lost = false;
  d.last = cudaSuccess;
}
uint32_t launches() {
  return device().launches;
}
void fail_launch(uint32_t launch) {
  device().behaviour.launch_fails = device().launches + launch;
}
uint32_t graph_launches() {
  return device().graph_launches;
}
uint32_t looks() {
  return device().looks;
}
uint64_t bytes_in_use() {
  return device().bytes;
}
uint64_t registered_bytes() {
  uint64_t all = 0;
  for (const auto& [begin, bytes] : device().registered) all += bytes;
  return all;
}
const std::byte* mapped(const std::byte* there, size_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(there) - kMapped;
  const auto found = device().registered_at(at, bytes);
  if (found == device().registered.end() || at < found->first || at + bytes > found->first + found->second)
    refuse("a kernel reads memory of the host that is not registered");
  return reinterpret_cast<const std::byte*>(at);
}
void check_given_back(const void* p, size_t bytes) {
  if (device().registered_at(reinterpret_cast<uintptr_t>(p), bytes) != device().registered.end())
    refuse("memory that is registered is given back to the system");
}

cudaError_t queue_launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> body) {
  Device& d = device();
  if (++d.launches == d.behaviour.launch_fails) return answer(cudaErrorLaunchOutOfResources);
  return queue(stream, [grid, block, body = std::move(body)] { run_grid(grid, block, body); });
}

}  // namespace on_host

using on_host::answer;
using on_host::device;

cudaError_t cudaGetDeviceCount(int* count) {
  *count = device().behaviour.devices;
  return device().behaviour.driver;
}
cudaError_t cudaSetDevice(int number) {
  if (device().lost) return answer(cudaErrorECCUncorrectable);
  return answer(number < device().behaviour.devices ? cudaSuccess : cudaErrorInvalidValue);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"a double", device().behaviour.major, 0};
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* whole) {
  *whole = device().behaviour.memory_bytes;
  *free = *whole - device().bytes;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** p, size_t bytes) {
  *p = on_host::take(bytes);
  if (*p == nullptr) return answer(cudaErrorMemoryAllocation);
  device().allocated[*p] = bytes;
  device().bytes += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  const auto found = device().allocated.find(p);
  if (found == device().allocated.end()) return answer(cudaErrorInvalidValue);
  on_host::drain();  // a device also waits here
  device().bytes -= found->second;
  std::free(p);
  device().allocated.erase(found);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  constexpr size_t kPage = 4096;
  *p = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
  std::memset(*p, 0xff, bytes);
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* p) {
  on_host::drain();
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned flags) {
  if (device().lost) return answer(cudaErrorECCUncorrectable);
  const auto begin = reinterpret_cast<uintptr_t>(p);
  if (bytes == 0 || begin % on_host::kHostPage != 0 || bytes % on_host::kHostPage != 0 ||
      flags != (cudaHostRegisterPortable | cudaHostRegisterMapped))
    on_host::refuse("what is registered is not whole pages, or not mapped");
  if (device().registered_at(begin, bytes) != device().registered.end())
    on_host::refuse("memory is registered twice");
  if (on_host::registered_bytes() + bytes > device().behaviour.lockable_bytes)
    return answer(cudaErrorMemoryAllocation);
  // A driver pins the pages, which commits them.
  madvise(p, bytes, MADV_POPULATE_WRITE);
  device().registered[begin] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* p) {
  if (device().registered.erase(reinterpret_cast<uintptr_t>(p)) == 0)
    on_host::refuse("memory is unregistered that is not registered");
  return device().lost ? answer(cudaErrorECCUncorrectable) : cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** there, void* p, unsigned) {
  const auto at = reinterpret_cast<uintptr_t>(p);
  if (device().registered_at(at, 1) == device().registered.end()) return answer(cudaErrorInvalidValue);
  *there = reinterpret_cast<void*>(at + on_host::kMapped);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new on_host::Stream;
  device().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  on_host::drain();
  device().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (device().lost) return answer(cudaErrorECCUncorrectable);
  return stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return on_host::queue(
      stream, [] {}, [event, record = event->recorded] { return event->over >= record; });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new on_host::Event;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  on_host::drain();
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const uint64_t record = ++event->recorded;
  return on_host::queue(stream, [event, record] { event->over = record; });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  on_host::Behaviour& behaviour = device().behaviour;
  if (++device().looks == behaviour.lost_at_look) {
    device().lost = true;
    // a lost device does no more work
    for (on_host::Stream* stream : device().streams) stream->queue.clear();
  }
  if (device().lost) return answer(cudaErrorECCUncorrectable);
  if (behaviour.late != 0) on_host::go_on();
  return event->over == event->recorded ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (device().lost) return answer(cudaErrorECCUncorrectable);
  if (!device().behaviour.captures) return answer(cudaErrorInvalidValue);
  if (stream->capturing) on_host::refuse("a stream is captured twice");
  stream->capturing = std::make_unique<on_host::Graph>();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (!stream->capturing) on_host::refuse("a capture ends that has not begun");
  *graph = stream->capturing.release();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  *executable = new on_host::Executable{*graph};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  ++device().graph_launches;
  for (const std::function<void()>& work : executable->graph.works) {
    if (const cudaError_t error = on_host::queue(stream, work); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  on_host::drain();
  delete executable;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  on_host::drain();
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  on_host::drain();
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  on_host::drain();
  if (bytes > 0) std::memcpy(to, from, bytes);  // with no bytes, pointers may be null, as CUDA allows
  return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  on_host::drain();
  if (bytes > 0) std::memset(to, value, bytes);
  return cudaSuccess;
}
// `from` is pinned memory and is read when the copy runs.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  return on_host::queue(stream, [=] {
    if (bytes > 0) std::memmove(to, from, bytes);
  });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind, cudaStream_t stream) {
  return on_host::queue(stream, [=] {
    for (size_t row = 0; row < height; ++row)
      std::memcpy(static_cast<char*>(to) + row * to_pitch, static_cast<const char*>(from) + row * from_pitch,
                  width);
  });
}
// A caller that waits for this callback parks, so all work queued up to here is done first.
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  const cudaError_t error = on_host::queue(stream, [=] { function(argument); });
  on_host::drain();
  return error;
}
cudaError_t cudaGetLastError() {
  const cudaError_t last = device().last;
  device().last = device().lost ? cudaErrorECCUncorrectable : cudaSuccess;
  return last;
}
const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorECCUncorrectable:
      return "cudaErrorECCUncorrectable";
    case cudaErrorLaunchOutOfResources:
      return "cudaErrorLaunchOutOfResources";
    default:
      return "cudaError";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorECCUncorrectable ? "uncorrectable ECC error encountered"
                                            : "an error of the double";
}

CUresult cuMemAddressReserve(CUdeviceptr* at, size_t bytes, size_t alignment, CUdeviceptr,
                             unsigned long long) {
  void* const p =
      mmap(nullptr, bytes + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *at = (reinterpret_cast<uintptr_t>(p) + alignment - 1) / alignment * alignment;
  return CUDA_SUCCESS;
}
// The bytes skipped for alignment stay reserved; they take no memory.
CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes) {
  munmap(reinterpret_cast<void*>(at), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp*,
                     unsigned long long) {
  if (device().bytes + bytes > device().behaviour.memory_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  device().bytes += bytes;
  *handle = ++device().handles << 32 | bytes;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  device().bytes -= handle & 0xffffffff;
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t, CUmemGenericAllocationHandle, unsigned long long) {
  void* const p = reinterpret_cast<void*>(at);
  if (mprotect(p, bytes, PROT_READ | PROT_WRITE) != 0) return CUDA_ERROR_INVALID_VALUE;
  std::memset(p, 0xff, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr at, size_t bytes) {
  on_host::drain();
  void* const p = reinterpret_cast<void*>(at);
  madvise(p, bytes, MADV_DONTNEED);
  return mprotect(p, bytes, PROT_NONE) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemSetAccess(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags) {
  *granularity = 2 << 20;
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  static const std::map<std::string, void*> kFunctions = {
      {"cuMemAddressReserve", reinterpret_cast<void*>(cuMemAddressReserve)},
      {"cuMemAddressFree", reinterpret_cast<void*>(cuMemAddressFree)},
      {"cuMemCreate", reinterpret_cast<void*>(cuMemCreate)},
      {"cuMemRelease", reinterpret_cast<void*>(cuMemRelease)},
      {"cuMemMap", reinterpret_cast<void*>(cuMemMap)},
      {"cuMemUnmap", reinterpret_cast<void*>(cuMemUnmap)},
      {"cuMemSetAccess", reinterpret_cast<void*>(cuMemSetAccess)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(cuMemGetAllocationGranularity)},
  };
  const auto found = kFunctions.find(name);
  *function = found == kFunctions.end() ? nullptr : found->second;
  *result = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
