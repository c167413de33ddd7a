#include "tiers/gpu/cuda/mapped_memory.h"

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "core/base/align.h"
#include "tiers/gpu/cuda/outcome.h"

namespace tierd::cuda {

// All functions exist since CUDA 11, so every driver that runs this code has them.
struct DriverFunctions {
  decltype(&::cuMemAddressReserve) reserve = nullptr;
  decltype(&::cuMemAddressFree) free = nullptr;
  decltype(&::cuMemCreate) create = nullptr;
  decltype(&::cuMemRelease) release = nullptr;
  decltype(&::cuMemMap) map = nullptr;
  decltype(&::cuMemUnmap) unmap = nullptr;
  decltype(&::cuMemSetAccess) set_access = nullptr;
  decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;
};

namespace {

constexpr unsigned kDriverVersion = 11000;
constexpr uint64_t kLeastPiece = 2 << 20;

template <class Function>
bool find(const char* name, Function& function) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, kDriverVersion, cudaEnableDefault, &result);
  function = reinterpret_cast<Function>(found);
  return error == cudaSuccess && result == cudaDriverEntryPointSuccess && found != nullptr;
}

const DriverFunctions* driver_functions() {
  static DriverFunctions functions;
  static const bool all = find("cuMemAddressReserve", functions.reserve) &&
                          find("cuMemAddressFree", functions.free) && find("cuMemCreate", functions.create) &&
                          find("cuMemRelease", functions.release) && find("cuMemMap", functions.map) &&
                          find("cuMemUnmap", functions.unmap) &&
                          find("cuMemSetAccess", functions.set_access) &&
                          find("cuMemGetAllocationGranularity", functions.granularity);
  return all ? &functions : nullptr;
}

CUmemAllocationProp properties(int device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  return prop;
}

}  // namespace

Result<std::unique_ptr<MappedMemory>> MappedMemory::reserve(uint64_t bytes, int device) {
  const DriverFunctions* const driver = driver_functions();
  if (driver == nullptr)
    return Error{Code::unsupported, "gpu",
                 "the driver has no functions to map memory; install a newer driver"};
  std::unique_ptr<MappedMemory> memory(new MappedMemory(*driver, device));
  const CUmemAllocationProp prop = properties(device);
  size_t granularity = 0;
  if (driver->granularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) != CUDA_SUCCESS)
    return Error{Code::unsupported, "gpu", "this device cannot map its memory to addresses"};
  memory->piece_bytes_ = align_up(kLeastPiece, uint64_t{granularity});
  memory->size_ = align_up(std::max<uint64_t>(bytes, 1), memory->piece_bytes_);
  CUdeviceptr at = 0;
  if (driver->reserve(&at, memory->size_, memory->piece_bytes_, 0, 0) != CUDA_SUCCESS)
    return Error{Code::no_space, "gpu", "the device cannot reserve that many addresses"};
  memory->data_ = reinterpret_cast<std::byte*>(at);
  return memory;
}

MappedMemory::~MappedMemory() {
  while (!pieces_.empty()) unmap(pieces_.begin()->first);
  if (data_ != nullptr) (void)driver_.free(reinterpret_cast<CUdeviceptr>(data_), size_);
}

Status MappedMemory::map(const Range& range) {
  if (range.begin >= range.end) return {};
  const CUmemAllocationProp prop = properties(device_);
  CUmemAccessDesc access{};
  access.location = prop.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  for (uint64_t piece = range.begin / piece_bytes_; piece * piece_bytes_ < range.end; ++piece) {
    if (pieces_.contains(piece)) continue;
    CUmemGenericAllocationHandle handle = 0;
    const auto at = reinterpret_cast<CUdeviceptr>(data_) + piece * piece_bytes_;
    if (driver_.create(&handle, piece_bytes_, &prop, 0) != CUDA_SUCCESS)
      return Error{Code::no_space, "gpu", "the device's memory is used up"};
    if (driver_.map(at, piece_bytes_, 0, handle, 0) != CUDA_SUCCESS) {
      (void)driver_.release(handle);
      return Error{Code::no_space, "gpu", "the device could not map its memory"};
    }
    pieces_.emplace(piece, handle);
    if (driver_.set_access(at, piece_bytes_, &access, 1) != CUDA_SUCCESS) {
      unmap(piece);
      return Error{Code::no_space, "gpu", "the device could not map its memory"};
    }
  }
  return {};
}

void MappedMemory::unmap(uint64_t piece) {
  const auto found = pieces_.find(piece);
  (void)driver_.unmap(reinterpret_cast<CUdeviceptr>(data_) + piece * piece_bytes_, piece_bytes_);
  (void)driver_.release(found->second);
  pieces_.erase(found);
}

// Unused pieces are unmapped first: the device may have no room for both.
Status MappedMemory::use(uint64_t bytes, std::span<const Range> ranges) {
  std::vector<uint64_t> unused;
  auto range = ranges.begin();
  for (const auto& [piece, handle] : pieces_) {
    const uint64_t begin = piece * piece_bytes_, end = begin + piece_bytes_;
    if (end > bytes) break;  // the piece reaches beyond these bytes
    while (range != ranges.end() && range->end <= begin) ++range;
    if (range == ranges.end() || range->begin >= end) unused.push_back(piece);
  }
  for (const uint64_t piece : unused) unmap(piece);
  for (const Range& used : ranges) TIERD_TRY(map(used));
  return {};
}

}  // namespace tierd::cuda
