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
  std::vector<float> frequencies;  // of one kind of layer after the other
  for (const std::vector<float>& of_kind : plan_.attention.frequencies)
    frequencies.insert(frequencies.end(), of_kind.begin(), of_kind.end());
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

StepArgs CudaExecutor::args_of(const Step& s, const Batch& batch) const {
  return {.rows = batch.lists.rows,
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
          .factor = s.factor,
          .span = s.span,
          .activation = s.activation};
}

cudaError_t CudaExecutor::step(const Step& s, const Batch& batch) {
  const AttentionShape& shape = plan_.attention;
  StepArgs args = args_of(s, batch);
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
    case StepKind::cap:
    case StepKind::clip:
    case StepKind::scale:
    case StepKind::temper:
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
      return route({args, plan_.buffers[s.in].width, s.routing, tensor(s.routing.correction)}, batch.stream);
    case StepKind::gate:
      return gate(args, batch.stream);
    case StepKind::rope:
      args.column = s.column;
      return rope({args, reinterpret_cast<const float*>(frequencies_.get()) + s.turn * shape.pairs(),
                   shape.pairs(), shape.head_dim, shape.rope == RopeStyle::interleaved, shape.magnitude},
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
                     .window = s.window,
                     .scale = shape.scale,
                     .cap = shape.cap,
                     .sinks = args.weight == nullptr ? nullptr : args.weight + s.offset,
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

void CudaExecutor::neurons(const SiteWork& site, uint32_t edition, std::span<const Unit> units,
                           const Batch& batch, Outcome& outcome) {
  const auto n_units = static_cast<uint32_t>(units.size());
  if (site.gather) return gather(site, edition, n_units, batch, outcome);
  if (const auto* rows = std::get_if<Rows>(&site.cut))
    return compute(site, *rows, edition, n_units, batch, outcome);
  if (const auto* experts = std::get_if<Experts>(&site.cut))
    return compute(site, *experts, edition, n_units, batch, outcome);
  compute_added(site, edition, units, batch, outcome);
}

void CudaExecutor::gather(const SiteWork& site, uint32_t edition, uint32_t n_units, const Batch& batch,
                          Outcome& outcome) {
  const auto& cut = std::get<Rows>(site.cut);
  const Encoding encoding = plan_.editions[edition].front();
  const RowGather gather{.memory = memory_,
                         .units = batch.lists.units,
                         .n_units = n_units,
                         .rows_of_unit = cut.rows,
                         .n_in = cut.n_in,
                         .rows = batch.lists.rows,
                         .n_rows = batch.rows,
                         .out = line(site.out, 0),
                         .ldo = strides_[site.out]};
  if (!compressed_.has(edition)) {
    outcome.then([&] { return gather_rows(encoding, gather, batch.stream); });
    return;
  }
  BitmapUnits counted;
  outcome.then(
      [&] { return compressed_.count(edition, memory_, batch.lists.units, n_units, batch.stream, counted); });
  outcome.then([&] { return gather_bitmap_rows(encoding, gather, counted, batch.stream); });
}

// Counted units are compressed, and are multiplied straight from their bitmaps.
cudaError_t CudaExecutor::multiply(Encoding encoding, const RowProduct& product, const BitmapUnits& counted,
                                   cudaStream_t stream) {
  if (counted.n_units != 0) return multiply_bitmap_rows(encoding, product, counted, stream);
  if (batch_ && batch_->makes(encoding, product)) return batch_->multiply(encoding, product, stream);
  return multiply_rows(encoding, product, stream);
}

// One launch for all stacked operators that share an encoding.
void CudaExecutor::compute(const SiteWork& site, const Rows& cut, uint32_t edition, uint32_t n_units,
                           const Batch& batch, Outcome& outcome) {
  const Encodings& encodings = plan_.editions[edition];
  BitmapUnits counted;
  if (compressed_.has(edition)) {
    outcome.then([&] {
      return compressed_.count(edition, memory_, batch.lists.units, n_units, batch.stream, counted);
    });
  }
  RowProduct product{.memory = memory_,
                     .units = batch.lists.units,
                     .n_units = n_units,
                     .groups = static_cast<uint32_t>(divide_up(cut.rows, kGroupRows)),
                     .n_in = cut.n_in,
                     .rows_of_unit = cut.rows,
                     .x = line(site.in, 0),
                     .y = line(site.out, 0),
                     .ldx = strides_[site.in],
                     .ldy = strides_[site.out],
                     .tokens = batch.rows,
                     .masks = batch.lists.masks,
                     .mask_words = mask_words(batch.rows)};
  for (size_t part = 0; part < cut.stacked.size(); ++part) {
    product.row_end += cut.stacked[part];
    if (part + 1 < cut.stacked.size() && encodings[part + 1] == encodings[part]) continue;
    outcome.then([&] { return multiply(encodings[part], product, counted, batch.stream); });
    product.row_begin = product.row_end;
  }
}

// Compressed neurons are expanded first, a few runs at a time.
void CudaExecutor::compute_added(const SiteWork& site, uint32_t edition, std::span<const Unit> units,
                                 const Batch& batch, Outcome& outcome) {
  const Encodings& encodings = plan_.editions[edition];
  const auto compute_from = [&](const Together& together) {
    if (const auto* bundles = std::get_if<Bundles>(&site.cut))
      return compute(site, *bundles, encodings, together, batch, outcome);
    compute(site, std::get<Columns>(site.cut), encodings, together, batch, outcome);
  };
  const RunLists& lists = batch.lists;
  if (!compressed_.has(edition))
    return compute_from(
        {memory_, lists.units, static_cast<uint32_t>(units.size()), lists.begins, lists.n_runs});
  const uint32_t run = run_of(site.cut);
  uint32_t first_run = 0;
  for (size_t first = 0; first < units.size();) {
    const std::span<const Unit> rest = units.subspan(first);
    const auto n = static_cast<uint32_t>(CompressedEditions::are_expanded(rest, site.cut, encodings));
    uint32_t n_runs = 1;
    for (uint32_t k = 1; k < n; ++k) n_runs += rest[k].unit / run != rest[k - 1].unit / run ? 1 : 0;
    outcome.then([&] { return compressed_.expand(edition, memory_, lists.units + first, n, batch.stream); });
    compute_from(
        {compressed_.expanded_memory(), compressed_.expanded_units(), n, lists.begins + first_run, n_runs});
    first += n;
    first_run += n_runs;
  }
}

void CudaExecutor::compute(const SiteWork& site, const Bundles& cut, const Encodings& encodings,
                           const Together& together, const Batch& batch, Outcome& outcome) {
  const Bundle bundle = cut.bundle(encodings);
  const FeedForward& ffn = site.ffn;
  const BundleValues asked{.memory = together.memory,
                           .units = together.units,
                           .n_units = together.n_units,
                           .n_in = bundle.cols,
                           .gated = cut.gated,
                           .up_offset = bundle.up_offset(),
                           .activation = ffn.activation,
                           .threshold = ffn.threshold,
                           .gate_bias = tensor(ffn.gate_bias),
                           .up_bias = tensor(ffn.up_bias),
                           .x = line(site.in, 0),
                           .values = line(ffn.hidden, 0),
                           .ldx = strides_[site.in],
                           .ldv = strides_[ffn.hidden],
                           .tokens = batch.rows};
  outcome.then([&] { return bundle_values(bundle.encoding, asked, batch.stream); });
  add(site, bundle.encoding,
      {.memory = together.memory,
       .units = together.units,
       .n_units = together.n_units,
       .offset = bundle.down_offset(),
       .width = bundle.cols,
       .values = asked.values,
       .ldv = asked.ldv,
       .tokens = batch.rows},
      together, batch, outcome);
}

void CudaExecutor::compute(const SiteWork& site, const Columns& cut, const Encodings& encodings,
                           const Together& together, const Batch& batch, Outcome& outcome) {
  auto* const factors = reinterpret_cast<float*>(factors_.get());
  const ColumnValues asked{.units = together.units,
                           .n_units = together.n_units,
                           .x = line(site.in, 0),
                           .values = factors,
                           .ldx = strides_[site.in],
                           .ldv = together.n_units,
                           .tokens = batch.rows};
  outcome.then([&] { return column_values(asked, batch.stream); });
  add(site, encodings.front(),
      {.memory = together.memory,
       .units = together.units,
       .n_units = together.n_units,
       .width = cut.n_out,
       .values = factors,
       .ldv = together.n_units,
       .tokens = batch.rows},
      together, batch, outcome);
}

void CudaExecutor::add(const SiteWork& site, Encoding encoding, const WeightedColumns& columns,
                       const Together& together, const Batch& batch, Outcome& outcome) {
  if ((batch.flags & kMeasure) != 0) {
    outcome.then([&] {
      return measure_columns(encoding, columns, line(site.contribution, 0), strides_[site.contribution],
                             batch.stream);
    });
  }
  if (batch.lists.masks != nullptr) {
    outcome.then(
        [&] { return silence_values(columns, batch.lists.masks, mask_words(batch.rows), batch.stream); });
  }
  if ((batch.flags & kTell) != 0) {
    outcome.then([&] {
      return tell_values(columns, line(site.contribution, 0), strides_[site.contribution], batch.stream);
    });
  }
  const uint64_t of_token = uint64_t{together.n_runs} * columns.width * sizeof(float);
  const uint64_t tokens = std::clamp<uint64_t>(partial_bytes(plan_) / of_token, 1, batch.rows);
  const ColumnRuns runs{.begins = together.begins,
                        .n_runs = together.n_runs,
                        .partial = reinterpret_cast<float*>(partial_.get()),
                        .tokens = static_cast<uint32_t>(tokens)};
  outcome.then([&] {
    return add_columns(encoding, columns, runs, line(site.out, 0), strides_[site.out], batch.stream);
  });
}

// The experts of a message are computed side by side, as many at a time as scratch has lines for all rows.
// Lines of rows that do not use an expert are neither written nor read.
void CudaExecutor::compute(const SiteWork& site, const Experts& cut, uint32_t edition, uint32_t n_units,
                           const Batch& batch, Outcome& outcome) {
  const ExpertMatrices matrices = cut.matrices(plan_.editions[edition]);
  const FeedForward& ffn = site.ffn;
  const BufferId results = site.experts.results;
  const uint32_t inner_rows = matrices.inner_groups() * kGroupRows;
  const float* const choice = line(site.experts.choice, 0);
  const uint32_t ldc = strides_[site.experts.choice];
  const uint32_t at_once = plan_.max_rows / batch.rows;
  for (uint32_t first = 0; first < n_units; first += at_once) {
    const Unit* const units = batch.lists.units + first;
    const uint32_t n = std::min(at_once, n_units - first);
    BitmapUnits counted;
    if (compressed_.has(edition))
      outcome.then([&] { return compressed_.count(edition, memory_, units, n, batch.stream, counted); });
    RowProduct product{.memory = memory_,
                       .units = units,
                       .n_units = n,
                       .groups = matrices.inner_groups(),
                       .n_in = cut.width,
                       .row_end = inner_rows,
                       .x = line(site.in, 0),
                       .y = line(ffn.up, 0),
                       .ldx = strides_[site.in],
                       .ldy = strides_[ffn.up],
                       .tokens = batch.rows,
                       .y_lines = batch.rows,
                       .choice = choice,
                       .ldc = ldc};
    outcome.then([&] { return multiply(matrices.gate, product, counted, batch.stream); });
    product.offset = matrices.up_offset();
    product.y += inner_rows;
    outcome.then([&] { return multiply(matrices.up, product, counted, batch.stream); });
    outcome.then([&] {
      return activate_experts({.units = units,
                               .n_units = n,
                               .n_rows = batch.rows,
                               .choice = choice,
                               .ldc = ldc,
                               .in = line(ffn.up, 0),
                               .ld_in = strides_[ffn.up],
                               .up_at = inner_rows,
                               .out = line(ffn.hidden, 0),
                               .ld_out = strides_[ffn.hidden],
                               .inner = cut.inner,
                               .activation = ffn.activation,
                               .threshold = ffn.threshold,
                               .gate_bias = tensor(ffn.gate_bias),
                               .up_bias = tensor(ffn.up_bias)},
                              batch.stream);
    });
    product.offset = matrices.down_offset();
    product.groups = matrices.outer_groups();
    product.n_in = cut.inner;
    product.row_end = matrices.outer_groups() * kGroupRows;
    product.x = line(ffn.hidden, 0);
    product.ldx = strides_[ffn.hidden];
    product.x_lines = batch.rows;
    product.y = line(results, 0);
    product.ldy = strides_[results];
    outcome.then([&] { return multiply(matrices.down, product, counted, batch.stream); });
    outcome.then([&] {
      return add_experts({.units = units,
                          .n_units = n,
                          .n_rows = batch.rows,
                          .choice = choice,
                          .ldc = ldc,
                          .results = line(results, 0),
                          .ldr = strides_[results],
                          .y = line(site.out, 0),
                          .ldy = strides_[site.out],
                          .width = cut.width,
                          .bias = tensor(ffn.down_bias)},
                         batch.stream);
    });
  }
}

}  // namespace tierd::cuda
