#include "tiers/gpu/cuda/cuda_executor.h"

#include <algorithm>
#include <utility>

#include "core/base/row_mask.h"
#include "tiers/gpu/cuda/executor_scratch.h"

namespace tierd::cuda {

CudaExecutor::CudaExecutor(const ComputePlan& plan, std::unique_ptr<BatchProducts> batch)
    : plan_(plan), offsets_(buffer_offsets(plan)), batch_(std::move(batch)) {
  for (const BufferSpec& buffer : plan_.buffers) strides_.push_back(buffer_stride(buffer));
}

uint64_t CudaExecutor::device_bytes(const ComputePlan& plan) {
  return buffer_offsets(plan).back() + kv_bytes(plan) + partial_bytes(plan) + factor_bytes(plan) +
         CompressedEditions::device_bytes(plan);
}

cudaError_t CudaExecutor::create(const ComputePlan& plan, std::unique_ptr<BatchProducts> batch,
                                 std::unique_ptr<CudaExecutor>& out) {
  out.reset(new CudaExecutor(plan, std::move(batch)));
  return out->allocate_all();
}

cudaError_t CudaExecutor::allocate_all() {
  const std::vector<float>& frequencies = plan_.attention.frequencies;
  Outcome outcome;
  outcome.then([&] { return allocate(offsets_.back(), activations_); });
  outcome.then([&] { return allocate(kv_bytes(plan_), kv_); });
  outcome.then([&] { return allocate(partial_bytes(plan_), partial_); });
  outcome.then([&] { return allocate(factor_bytes(plan_), factors_); });
  outcome.then([&] { return compressed_.allocate(plan_); });
  outcome.then([&] { return allocate(frequencies.size() * sizeof(float), frequencies_); });
  if (!frequencies.empty()) {
    outcome.then([&] {
      return cudaMemcpy(frequencies_.get(), frequencies.data(), frequencies.size() * sizeof(float),
                        cudaMemcpyHostToDevice);
    });
  }
  // As on the CPU, buffers start as 0: columns that no row group fills are multiplied by weights of 0.
  if (offsets_.back() != 0) outcome.then([&] { return cudaMemset(activations_.get(), 0, offsets_.back()); });
  if (kv_bytes(plan_) != 0) outcome.then([&] { return cudaMemset(kv_.get(), 0, kv_bytes(plan_)); });
  outcome.then([] { return cudaDeviceSynchronize(); });  // our streams do not wait for these calls
  return outcome.error();
}

void CudaExecutor::set_memory(std::byte* memory, std::span<const uint64_t> tensors) {
  memory_ = memory;
  tensors_.assign(tensors.begin(), tensors.end());
}

uint32_t CudaExecutor::run_of_site(uint32_t site) const {
  return run_of(plan_.sites[site].cut);
}

void CudaExecutor::run(const Message& message, const Payload& payload, const RunLists& lists,
                       cudaStream_t stream, Outcome& outcome) {
  const SiteWork& site = plan_.sites[message.site];
  const Batch batch{lists, message.rows, stream, message.flags};
  if ((message.flags & kRunBefore) != 0) program(site.before, batch, outcome);
  take_inputs(site, payload, batch, outcome);
  if ((message.flags & kPartial) != 0) {
    outcome.then([&] {
      return clear_columns(line(site.out, 0), strides_[site.out], batch.rows, outputs(site.cut), stream);
    });
  }
  if (!payload.units.empty()) neurons(site, message.edition, payload.units, batch, outcome);
  take_results(site, payload, batch, outcome);
  if ((message.flags & kRunAfter) != 0) program(site.after, batch, outcome);
}

void CudaExecutor::program(const Program& program, const Batch& batch, Outcome& outcome) {
  for (const Step& s : program) outcome.then([&] { return step(s, batch); });
}

KvLayer CudaExecutor::kv_of(uint32_t layer) const {
  const uint64_t of_layer =
      kv_bytes(plan_) / (2ull * plan_.attention.n_layers);  // of the keys, or of the values
  std::byte* const keys = kv_.get() + layer * of_layer;
  return {.keys = keys,
          .values = keys + plan_.attention.n_layers * of_layer,
          .encoding = plan_.kv,
          .context = plan_.context,
          .kv_dim = plan_.attention.kv_dim()};
}

cudaError_t CudaExecutor::step(const Step& s, const Batch& batch) {
  const AttentionShape& shape = plan_.attention;
  StepArgs args{.rows = batch.lists.rows,
                .n_rows = batch.rows,
                .in = line(s.in, 0),
                .out = line(s.out, 0),
                .ld_in = s.in == kNoBuffer ? 0 : strides_[s.in],
                .ld_out = s.out == kNoBuffer ? 0 : strides_[s.out],
                .width = s.width,
                .head = s.head,
                .offset = s.offset,
                .weight = tensor(s.weight),
                .bias = tensor(s.bias),
                .eps = s.eps,
                .threshold = s.threshold,
                .activation = s.activation};
  switch (s.kind) {
    case StepKind::rms_norm:
    case StepKind::layer_norm:
      return norm({args, s.kind == StepKind::layer_norm, false, s.width}, batch.stream);
    case StepKind::head_norm:
    case StepKind::head_rms_norm:
      args.column = s.column;
      args.in = args.out;
      args.ld_in = args.ld_out;
      return norm({args, s.kind == StepKind::head_norm, true, s.head}, batch.stream);
    case StepKind::add_bias:
    case StepKind::clip:
      args.column = s.column;
      return elementwise(s.kind, args, batch.stream);
    case StepKind::add_chosen:
      args.choice = line(s.choice, 0) + s.column;
      args.ld_choice = strides_[s.choice];
      return elementwise(s.kind, args, batch.stream);
    case StepKind::add:
    case StepKind::add_position:
    case StepKind::pick:
    case StepKind::reorder:
    case StepKind::activate:
    case StepKind::activate_mul:
      return elementwise(s.kind, args, batch.stream);
    case StepKind::route:
      return route({args, plan_.buffers[s.in].width, s.picks, s.sum_to_one}, batch.stream);
    case StepKind::rope:
      args.column = s.column;
      return rope({args, reinterpret_cast<const float*>(frequencies_.get()),
                   static_cast<uint32_t>(shape.frequencies.size()), shape.head_dim,
                   shape.rope == RopeStyle::interleaved},
                  batch.stream);
    case StepKind::store_kv:
      return store_kv({.kv = kv_of(s.layer),
                       .rows = args.rows,
                       .n_rows = args.n_rows,
                       .in = args.in,
                       .ld_in = args.ld_in,
                       .key_column = s.column,
                       .value_column = s.offset},
                      batch.stream);
    case StepKind::attend:
      return attend({.kv = kv_of(s.layer),
                     .rows = args.rows,
                     .n_rows = args.n_rows,
                     .n_heads = shape.n_heads,
                     .heads_a_kv_head = shape.n_heads / shape.n_kv_heads,
                     .head_dim = shape.head_dim,
                     .window = shape.window,
                     .in = args.in,
                     .out = args.out,
                     .ld_in = args.ld_in,
                     .ld_out = args.ld_out,
                     .column = s.column},
                    batch.stream);
  }
  return cudaErrorInvalidValue;
}

void CudaExecutor::take_inputs(const SiteWork& site, const Payload& payload, const Batch& batch,
                               Outcome& outcome) {
  for (size_t i = 0; i < payload.takes.size(); ++i) {
    const Take& take = payload.takes[i];
    if (take.what == Take::What::results) continue;
    const BufferId buffer = take.what == Take::What::input ? site.in : site.experts.choice;
    outcome.then([&] {
      return place_columns({.values = batch.lists.takes[i].values,
                            .n_rows = batch.rows,
                            .first = take.first,
                            .columns = take.columns,
                            .out = line(buffer, 0),
                            .ld_out = strides_[buffer]},
                           batch.stream);
    });
  }
}

void CudaExecutor::take_results(const SiteWork& site, const Payload& payload, const Batch& batch,
                                Outcome& outcome) {
  const auto* const cut = std::get_if<Rows>(&site.cut);
  for (size_t i = 0; i < payload.takes.size(); ++i) {
    const Take& take = payload.takes[i];
    if (take.what != Take::What::results) continue;
    PlacedColumns placed{.values = batch.lists.takes[i].values,
                         .n_rows = batch.rows,
                         .first = take.first,
                         .columns = take.columns,
                         .out = line(site.out, 0),
                         .ld_out = strides_[site.out],
                         .add = cut == nullptr};
    if (cut != nullptr) {
      if (take.neurons.empty()) continue;
      placed.neurons = batch.lists.takes[i].neurons;
      placed.n_neurons = static_cast<uint32_t>(take.neurons.size());
      placed.rows_of_neuron = cut->rows;
      if (site.gather) placed.rows = batch.lists.rows;
    }
    outcome.then([&] { return place_columns(placed, batch.stream); });
  }
}

uint64_t CudaExecutor::touched(const Message& message, const Payload& payload) const {
  if (payload.units.empty()) return 0;
  const SiteWork& site = plan_.sites[message.site];
  const Encodings& encodings = plan_.editions[message.edition];
  if (site.gather) return message.rows * encoded_bytes(encodings.front(), inputs(site.cut));
  uint64_t bytes = 0;
  const CompressedNeurons* const compressed = plan_.compressed_of(message.edition);
  for (const Unit& unit : payload.units) {
    bytes +=
        compressed != nullptr ? compressed->bytes[unit.unit] : neuron_bytes(site.cut, encodings, unit.unit);
  }
  return bytes;
}

}  // namespace tierd::cuda
