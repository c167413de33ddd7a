// Runs the dense segments and the neurons of sites on the device, over activation buffers and a KV cache in
// its memory, as tiers/dram/executor.h does on the CPU; but all work is queued on a stream, and no function
// waits. The bits differ from the CPU's; like those they depend on the numbers of rows and neurons alone.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/agent/program.h"
#include "tiers/gpu/cuda/attention.h"
#include "tiers/gpu/cuda/batch_products.h"
#include "tiers/gpu/cuda/buffers.h"
#include "tiers/gpu/cuda/compressed_editions.h"
#include "tiers/gpu/cuda/message_lists.h"
#include "tiers/gpu/cuda/outcome.h"
#include "tiers/gpu/cuda/rows.h"
#include "tiers/gpu/cuda/steps.h"
#include "tiers/gpu/cuda/sums.h"

namespace tierd::cuda {

class CudaExecutor {
 public:
  // `batch` multiplies large batches; NULL: the kernels of small batches do. Returns the error of the first
  // call that fails, such as out of memory.
  static cudaError_t create(const ComputePlan& plan, std::unique_ptr<BatchProducts> batch,
                            std::unique_ptr<CudaExecutor>& out);
  // Returns the device memory that the executor needs: activations, KV cache, and its scratch. Does not
  // include that of `batch`.
  static uint64_t device_bytes(const ComputePlan& plan);

  // `memory`: the device address from which the places of units and the bytes of tensors are counted.
  void set_memory(std::byte* memory, std::span<const uint64_t> tensors);
  // Queues a run without its gives: the segment before, the takes, the neurons, the segment after. `payload`
  // is the kernel's, `lists` are its lists on the device.
  void run(const Message& message, const Payload& payload, const RunLists& lists, cudaStream_t stream,
           Outcome& outcome);
  // Returns the bytes of weights that a run reads.
  uint64_t touched(const Message& message, const Payload& payload) const;
  // Returns whether the last run found a neuron whose bits announce more or fewer values than it has. Call it
  // after that run has ended.
  bool malformed() const { return compressed_.malformed(); }
  void begin_run() { compressed_.begin_run(); }
  // Returns how many neurons of the site are summed before their sum is added to its results; 1: none are.
  uint32_t run_of_site(uint32_t site) const;

  const std::byte* activations() const { return activations_.get(); }

 private:
  struct Batch {
    const RunLists& lists;
    uint32_t rows;
    cudaStream_t stream;
    uint8_t flags;  // of the message
  };
  // Neurons of a message that are computed together: all, or those that are expanded together.
  struct Together {
    const std::byte* memory;
    const Unit* units;
    uint32_t n_units;
    const uint32_t* begins;  // where their runs begin in the message's list
    uint32_t n_runs;
  };
  CudaExecutor(const ComputePlan& plan, std::unique_ptr<BatchProducts> batch);
  cudaError_t allocate_all();
  void program(const Program& program, const Batch& batch, Outcome& outcome);
  StepArgs args_of(const Step& step, const Batch& batch) const;
  cudaError_t step(const Step& step, const Batch& batch);
  KvLayer kv_of(uint32_t layer) const;
  void take_inputs(const SiteWork& site, const Payload& payload, const Batch& batch, Outcome& outcome);
  void take_results(const SiteWork& site, const Payload& payload, const Batch& batch, Outcome& outcome);
  void neurons(const SiteWork& site, uint32_t edition, std::span<const Unit> units, const Batch& batch,
               Outcome& outcome);
  cudaError_t multiply(Encoding encoding, const RowProduct& product, const BitmapUnits& counted,
                       cudaStream_t stream);
  void gather(const SiteWork& site, uint32_t edition, uint32_t n_units, const Batch& batch, Outcome& outcome);
  void compute(const SiteWork& site, const Rows& cut, uint32_t edition, uint32_t n_units, const Batch& batch,
               Outcome& outcome);
  void compute(const SiteWork& site, const Experts& cut, uint32_t edition, uint32_t n_units,
               const Batch& batch, Outcome& outcome);
  void compute_added(const SiteWork& site, uint32_t edition, std::span<const Unit> units, const Batch& batch,
                     Outcome& outcome);
  void compute(const SiteWork& site, const Bundles& cut, const Encodings& encodings, const Together& together,
               const Batch& batch, Outcome& outcome);
  void compute(const SiteWork& site, const Columns& cut, const Encodings& encodings, const Together& together,
               const Batch& batch, Outcome& outcome);
  void add(const SiteWork& site, Encoding encoding, const WeightedColumns& columns, const Together& together,
           const Batch& batch, Outcome& outcome);
  float* line(BufferId buffer, uint64_t i) const {
    if (buffer == kNoBuffer) return nullptr;
    return reinterpret_cast<float*>(activations_.get() + offsets_[buffer]) + i * strides_[buffer];
  }
  const float* tensor(TensorId id) const {
    return id == kNoTensor ? nullptr : reinterpret_cast<const float*>(memory_ + tensors_[id]);
  }

  const ComputePlan plan_;
  const std::vector<uint64_t> offsets_;
  std::vector<uint32_t> strides_;
  std::byte* memory_ = nullptr;
  std::vector<uint64_t> tensors_;
  DeviceBytes activations_;
  DeviceBytes kv_;
  DeviceBytes frequencies_;
  DeviceBytes factors_;  // for Columns: [rows x neurons]
  DeviceBytes partial_;  // sums of runs
  CompressedEditions compressed_;
  const std::unique_ptr<BatchProducts> batch_;
};

}  // namespace tierd::cuda
