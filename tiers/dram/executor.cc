#include "tiers/dram/executor.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/check.h"
#include "core/base/row_mask.h"
#include "core/model/layout/codec.h"
#include "tiers/dram/work_cost.h"

namespace tierd {
namespace {

// Bytes of one worker's sums at a time, so that they stay in its L2 cache from run to run.
constexpr uint64_t kSumBytes = 256 << 10;

}  // namespace

Result<Executor> Executor::create(ComputePlan plan, const ComputeKernels& kernels, Team& team) {
  TIERD_ASSIGN(ReservedMemory activations, ReservedMemory::reserve(buffer_offsets(plan).back()));
  TIERD_ASSIGN(KvCache kv, KvCache::create(plan));
  return Executor(std::move(plan), kernels, team, std::move(activations), std::move(kv));
}

Executor::Executor(ComputePlan plan, const ComputeKernels& kernels, Team& team, ReservedMemory activations,
                   KvCache kv)
    : plan_(std::move(plan)),
      kernels_(&kernels),
      team_(&team),
      activations_(std::move(activations)),
      kv_(std::move(kv)),
      offsets_(buffer_offsets(plan_)),
      workers_(team.workers()) {
  for (const BufferSpec& buffer : plan_.buffers) strides_.push_back(buffer_stride(buffer));
  for (Worker& worker : workers_) worker.scores.resize(plan_.context);
}

void Executor::set_tensor(TensorId id, const float* data) {
  if (id >= tensors_.size()) tensors_.resize(id + 1u);
  tensors_[id] = data;
}

double Executor::activation_error() const {
  double error = 0, whole = 0;
  for (const Worker& worker : workers_) {
    error += worker.squares[0];
    whole += worker.squares[1];
  }
  return whole > 0 ? std::sqrt(error / whole) : 0;
}

void Executor::before(uint32_t s, std::span<const RowInfo> rows) {
  const SiteWork& site = plan_.sites[s];
  run(site.before, rows);
  quantize_input(site, static_cast<uint32_t>(rows.size()));
}

void Executor::quantize_input(const SiteWork& site, uint32_t rows) {
  if (!uses_int8(site) || site.gather) return;
  quantized_.resize(rows, inputs(site.cut));
  team_->run(rows, 1, uint64_t{rows} * inputs(site.cut) / kFloatsPerNs,
             [&](uint64_t begin, uint64_t end, uint32_t worker) {
               for (uint64_t i = begin; i < end; ++i) {
                 const auto r = static_cast<uint32_t>(i);
                 kernels_->quantize_row(row(site.in, r), r, quantized_, workers_[worker].squares);
               }
             });
}

void Executor::take_input(uint32_t s, uint32_t rows, std::span<const Take> takes) {
  const SiteWork& site = plan_.sites[s];
  bool taken = false;
  for (const Take& take : takes) {
    if (take.what == Take::What::results) continue;
    const BufferId buffer = take.what == Take::What::input ? site.in : site.experts.choice;
    for (uint32_t r = 0; r < rows; ++r)
      std::copy_n(take.values + uint64_t{r} * take.stride + take.first, take.columns,
                  row(buffer, r) + take.first);
    taken = true;
  }
  if (taken) quantize_input(site, rows);
}

void Executor::take_results(uint32_t s, std::span<const RowInfo> rows, std::span<const Take> takes) {
  const SiteWork& site = plan_.sites[s];
  for (const Take& take : takes) {
    if (take.what != Take::What::results) continue;
    for (uint32_t i = 0; i < rows.size(); ++i)
      take_row(site, rows[i], take, take.values + uint64_t{i} * take.stride, row(site.out, i));
  }
}

void Executor::take_row(const SiteWork& site, const RowInfo& info, const Take& take, const float* results,
                        float* out) {
  const auto* cut = std::get_if<Rows>(&site.cut);
  if (cut == nullptr) return kernels_->add(out + take.first, results + take.first, take.columns);
  for (const uint32_t neuron : take.neurons) {
    if (site.gather) {
      if (info.token / cut->rows == neuron) std::copy_n(results + take.first, take.columns, out + take.first);
      continue;
    }
    const uint32_t begin = std::max(cut->first_row(neuron), take.first);
    const uint32_t end = std::min(cut->first_row(neuron) + cut->rows_of(neuron), take.first + take.columns);
    if (begin < end) std::copy_n(results + begin, end - begin, out + begin);
  }
}

void Executor::clear(uint32_t s, uint32_t rows) {
  const SiteWork& site = plan_.sites[s];
  for (uint32_t r = 0; r < rows; ++r) std::fill_n(row(site.out, r), outputs(site.cut), 0.0F);
}

void Executor::after(uint32_t s, std::span<const RowInfo> rows) {
  run(plan_.sites[s].after, rows);
}

std::optional<uint64_t> Executor::neurons(uint32_t s, uint32_t edition, std::span<const RowInfo> rows,
                                          std::span<const Unit> units, const std::byte* memory, Asked asked) {
  const SiteWork& site = plan_.sites[s];
  const auto n_rows = static_cast<uint32_t>(rows.size());
  for (Worker& worker : workers_) worker.malformed = false;
  uint64_t bytes = 0;
  if (site.gather) {
    bytes = gather(site, edition, rows, units, memory);
  } else if (const auto* by_row = std::get_if<Rows>(&site.cut)) {
    bytes = compute(site, *by_row, edition, n_rows, units, memory, asked);
  } else if (const auto* experts = std::get_if<Experts>(&site.cut)) {
    bytes = compute(site, *experts, edition, n_rows, units, memory, asked);
  } else {
    bytes = compute_added(site, edition, n_rows, units, memory, asked);
  }
  if (std::ranges::any_of(workers_, &Worker::malformed)) return std::nullopt;
  return bytes;
}

uint64_t Executor::compute(const SiteWork& site, const Rows& cut, uint32_t edition, uint32_t rows,
                           std::span<const Unit> units, const std::byte* memory, Asked asked) {
  const Encodings& encodings = plan_.editions[edition];
  const CompressedNeurons* const compressed = plan_.compressed_of(edition);
  std::vector<Piece> pieces;
  pieces.reserve(units.size());
  uint64_t groups = 0;
  uint64_t bytes = 0;
  for (const Unit& unit : units) {
    Piece piece = piece_of(site, edition, unit.unit, memory + unit.place * kPlaceUnit, 0);
    piece.encoding = cut.encoding_of(unit.unit, encodings);
    piece.groups = cut.groups_of(unit.unit);
    piece.first_row = cut.first_row(unit.unit);
    piece.first_group = groups;
    piece.inputs = rows;
    groups += piece.groups;
    bytes += compressed == nullptr ? cut.bytes(encodings, unit.unit) : compressed->bytes[unit.unit];
    pieces.push_back(piece);
  }
  multiply({cut.n_in, site.in, site.out, uses_int8(site)}, pieces, groups, bytes, rows);
  if (asked.row_masks != nullptr) silence(site, cut, rows, units, asked.row_masks);
  return bytes;
}

// Results of neurons that a row does not use are set to zero.
void Executor::silence(const SiteWork& site, const Rows& cut, uint32_t rows, std::span<const Unit> units,
                       const uint64_t* row_masks) {
  for (const Unit& unit : units) {
    for (uint32_t i = 0; i < rows; ++i) {
      if (mask_has(row_masks + uint64_t{unit.unit} * mask_words(rows), i)) continue;
      std::fill_n(row(site.out, i) + cut.first_row(unit.unit), cut.rows_of(unit.unit), 0.0F);
    }
  }
}

// The workers share the row groups of all pieces: a row's bits do not depend on the worker that computes it.
void Executor::multiply(const Product& product, std::span<const Piece> pieces, uint64_t groups,
                        uint64_t bytes, uint32_t rows) {
  if (groups == 0) return;
  team_->run(groups, std::max<uint64_t>(1, kGrainBytes * groups / bytes), cost_of(bytes, rows),
             [&](uint64_t begin, uint64_t end, uint32_t worker) {
               auto piece = std::upper_bound(pieces.begin(), pieces.end(), begin,
                                             [](uint64_t g, const Piece& p) { return g < p.first_group; }) -
                            1;
               while (begin < end) {
                 const uint64_t skip = begin - piece->first_group;
                 const auto n = static_cast<uint32_t>(std::min<uint64_t>(piece->groups - skip, end - begin));
                 multiply(product, *piece, skip, n, worker);
                 begin += n;
                 ++piece;
               }
             });
}

void Executor::multiply(const Product& product, const Piece& piece, uint64_t skip, uint32_t groups,
                        uint32_t worker) {
  const Encoding e = piece.encoding;
  const size_t ldx = strides_[product.in];
  const size_t ldy = strides_[product.out];
  const float* x = row(product.in, piece.first_input);
  float* out = row(product.out, piece.first_input) + piece.first_row + skip * kGroupRows;
  const bool int8 = product.int8 && is_quantized(e);
  if (piece.values.at != nullptr) {
    const BitmapRows rows = compressed_rows(piece, skip, groups, product.n_in);
    ExpandedLines& dense = workers_[worker].dense;
    const std::byte* const next =
        int8 ? multiply_bitmap_int8(*kernels_, rows, quantized_, piece.first_input, piece.inputs, out, ldy,
                                    dense)
             : multiply_bitmap(*kernels_, rows, x, ldx, piece.inputs, out, ldy, dense);
    const bool last = piece.whole && skip + groups == piece.groups;
    workers_[worker].malformed |= next == nullptr || (last && next != rows.values.end);
    return;
  }
  const std::byte* const weights = piece.weights + skip * group_bytes(e, product.n_in);
  if (int8) {
    kernels_->matmul_int8(e, weights, groups, product.n_in, quantized_, piece.first_input, piece.inputs, out,
                          ldy);
  } else {
    kernels_->matmul(e, weights, groups, product.n_in, x, ldx, piece.inputs, out, ldy);
  }
}

// Two phases: each neuron's value, divided by neurons; then the weighted columns.
uint64_t Executor::compute(const SiteWork& site, const Bundles& cut, uint32_t edition, uint32_t rows,
                           std::span<const Unit> units, const std::byte* memory, Asked asked) {
  const Bundle bundle = cut.bundle(plan_.editions[edition]);
  const FeedForward& ffn = site.ffn;
  const uint64_t n = units.size();
  gates_.resize(n);
  ups_.resize(n);
  downs_.resize(n);
  for (uint64_t k = 0; k < n; ++k) {
    gates_[k] = memory + units[k].place * kPlaceUnit;
    ups_[k] = gates_[k] + bundle.up_offset();
    downs_[k] = gates_[k] + bundle.down_offset();
  }
  const float* x = row(site.in, 0);
  const size_t ldx = strides_[site.in];
  const auto sums = [&](const std::vector<const std::byte*>& weights, TensorId bias, BufferId out,
                        uint64_t begin, uint64_t end) {
    kernels_->dots(bundle.encoding, std::span(weights).subspan(begin, end - begin), bundle.cols, x, ldx, rows,
                   row(out, 0) + begin, strides_[out]);
    if (bias == kNoTensor) return;
    for (uint32_t i = 0; i < rows; ++i) {
      for (uint64_t k = begin; k < end; ++k) row(out, i)[k] += tensors_[bias][units[k].unit];
    }
  };
  const Column column = {bundle.encoding, bundle.cols};
  float* const lengths = asked.measure ? column_lengths(site, edition) : nullptr;
  const uint64_t dot_bytes = bundle.down_offset();
  team_->run(n, std::max<uint64_t>(1, kGrainBytes / dot_bytes), cost_of(n * dot_bytes, rows),
             [&](uint64_t begin, uint64_t end, uint32_t) {
               sums(cut.gated ? gates_ : ups_, cut.gated ? ffn.gate_bias : ffn.up_bias, ffn.hidden, begin,
                    end);
               if (cut.gated) sums(ups_, ffn.up_bias, ffn.up, begin, end);
               for (uint32_t i = 0; i < rows; ++i) {
                 float* hidden = row(ffn.hidden, i) + begin;
                 const float* factor = cut.gated ? row(ffn.up, i) + begin : nullptr;
                 kernels_->activate(ffn.activation, ffn.threshold, hidden, factor,
                                    static_cast<uint32_t>(end - begin), hidden);
               }
               if (asked.measure)
                 measure(site, column, units, downs_, lengths, row(ffn.hidden, 0), strides_[ffn.hidden], rows,
                         begin, end);
               if (asked.row_masks == nullptr) return;
               for (uint32_t i = 0; i < rows; ++i) {
                 for (uint64_t k = begin; k < end; ++k) {
                   if (!mask_has(asked.row_masks + uint64_t{units[k].unit} * mask_words(rows), i))
                     row(ffn.hidden, i)[k] = 0;
                 }
               }
             });
  if (asked.tell) tell(site, units, row(ffn.hidden, 0), strides_[ffn.hidden], rows);

  const Factors hidden = {row(ffn.hidden, 0), strides_[ffn.hidden], false};
  add_columns(site, column, units, downs_, hidden, rows);
  return n * bundle.bytes();
}

uint64_t Executor::compute(const SiteWork& site, const Columns& cut, uint32_t edition, uint32_t rows,
                           std::span<const Unit> units, const std::byte* memory, Asked asked) {
  const Column column = cut.column(plan_.editions[edition]);
  const uint64_t n = units.size();
  downs_.resize(n);
  factors_.resize(rows * n);
  for (uint64_t k = 0; k < n; ++k) downs_[k] = memory + units[k].place * kPlaceUnit;
  for (uint32_t i = 0; i < rows; ++i) {
    const float* x = row(site.in, i);
    for (uint64_t k = 0; k < n; ++k) factors_[i * n + k] = x[units[k].unit];
  }
  const uint64_t bytes = column.encoded();
  if (asked.measure) {
    float* const lengths = column_lengths(site, edition);
    team_->run(n, 1, cost_of(n * bytes, 1), [&](uint64_t begin, uint64_t end, uint32_t) {
      measure(site, column, units, downs_, lengths, factors_.data(), n, rows, begin, end);
    });
  }
  for (uint32_t i = 0; i < rows && asked.row_masks != nullptr; ++i) {
    for (uint64_t k = 0; k < n; ++k) {
      if (!mask_has(asked.row_masks + uint64_t{units[k].unit} * mask_words(rows), i)) factors_[i * n + k] = 0;
    }
  }
  if (asked.tell) tell(site, units, factors_.data(), n, rows);
  const bool int8 = plan_.int8_activations && is_quantized(column.encoding);
  add_columns(site, column, units, downs_, {factors_.data(), n, int8}, rows);
  return n * bytes;
}

// Divided by output columns, so that the order of the sums depends on no worker.
void Executor::add_columns(const SiteWork& site, const Column& column, std::span<const Unit> units,
                           std::span<const std::byte* const> columns, const Factors& factors, uint32_t rows) {
  const uint64_t n = units.size();
  const uint64_t blocks = (uint64_t{column.rows} + kQuantBlock - 1) / kQuantBlock;
  // One share for each worker: short pieces of columns that are apart are the slowest to read.
  const uint64_t share = (blocks + team_->workers() - 1) / team_->workers();
  const uint64_t in_cache = kSumBytes / sizeof(float) / kQuantBlock / std::max(1U, rows);
  const uint64_t block_of_columns = std::max<uint64_t>(1, n * encoded_bytes(column.encoding, kQuantBlock));
  const uint64_t least = std::max({uint64_t{1}, kGrainBytes / block_of_columns, std::min(share, in_cache)});
  // Shares end at strips, so that each has whole scales.
  const uint64_t grain = least < kStripBlocks ? least : align_up(least, kStripBlocks);
  team_->run(blocks, grain, cost_of(n * column.encoded(), rows),
             [&](uint64_t begin, uint64_t end, uint32_t worker) {
               const auto first = static_cast<uint32_t>(begin * kQuantBlock);
               const auto last = static_cast<uint32_t>(std::min<uint64_t>(end * kQuantBlock, column.rows));
               const auto run_from = [&](uint64_t from) {
                 uint64_t k = from;
                 while (k < n && units[k].unit / kPartialNeurons == units[from].unit / kPartialNeurons) ++k;
                 return columns.subspan(from, k - from);
               };
               ColumnRun run = {column.encoding, column.values(), run_from(0)};
               for (uint64_t from = 0; from < n; from += run.columns.size(), run.columns = run.next) {
                 run.next = run_from(from + run.columns.size());
                 const float* h = factors.values + from;
                 if (factors.as_int8) {
                   kernels_->add_weighted_int8(run, first, last, h, factors.stride, rows, row(site.out, 0),
                                               strides_[site.out], workers_[worker].squares);
                 } else {
                   kernels_->add_weighted(run, first, last, h, factors.stride, rows, row(site.out, 0),
                                          strides_[site.out]);
                 }
               }
             });
}

uint64_t Executor::gather(const SiteWork& site, uint32_t edition, std::span<const RowInfo> rows,
                          std::span<const Unit> units, const std::byte* memory) {
  const auto& cut = std::get<Rows>(site.cut);
  const Encoding encoding = plan_.editions[edition].front();
  const CompressedNeurons* const compressed = plan_.compressed_of(edition);
  const uint64_t group = group_bytes(encoding, cut.n_in);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    for (const Unit& unit : units) {
      if (rows[i].token / cut.rows != unit.unit) continue;
      const uint32_t in_neuron = rows[i].token % cut.rows;
      const std::byte* at = memory + unit.place * kPlaceUnit + in_neuron / kGroupRows * group;
      if (compressed != nullptr) {
        at = expand_group(piece_of(site, edition, unit.unit, memory + unit.place * kPlaceUnit,
                                   in_neuron / kGroupRows * group),
                          *compressed, group);
        if (at == nullptr) continue;
      }
      unpack_row(encoding, in_neuron % kGroupRows, {at, group}, {row(site.out, i), cut.n_in});
    }
  }
  return rows.size() * encoded_bytes(encoding, cut.n_in);
}

void Executor::run(const Program& program, std::span<const RowInfo> rows) {
  for (const Step& step : program) run_step(step, rows);
}

void Executor::run_step(const Step& step, std::span<const RowInfo> rows) {
  if (step.kind == StepKind::attend) return attend(step, rows);
  if (step.kind == StepKind::route) return route(step, static_cast<uint32_t>(rows.size()));
  if (step.kind == StepKind::rope) prepare_rotation(rows);
  team_->run(rows.size(), 1, rows.size() * step.width / kFloatsPerNs,
             [&](uint64_t begin, uint64_t end, uint32_t) {
               for (uint64_t i = begin; i < end; ++i) run_row(step, rows[i], static_cast<uint32_t>(i));
             });
}

void Executor::run_row(const Step& step, const RowInfo& info, uint32_t i) {
  const auto tensor = [&](TensorId id) -> const float* { return id == kNoTensor ? nullptr : tensors_[id]; };
  float* out = step.out == kNoBuffer ? nullptr : row(step.out, i);
  const float* in = step.in == kNoBuffer ? nullptr : row(step.in, i);
  switch (step.kind) {
    case StepKind::rms_norm:
      return kernels_->rms_norm(row(step.in, info.row), tensor(step.weight), step.eps, step.width, out);
    case StepKind::layer_norm:
      return kernels_->layer_norm(row(step.in, info.row), tensor(step.weight), tensor(step.bias), step.eps,
                                  step.width, out);
    case StepKind::pick:
      return pick(step, info, out);
    case StepKind::add_chosen:
      return add_chosen(step, info, in);
    case StepKind::add_bias:
      return kernels_->add(out + step.column, tensor(step.weight) + step.offset, step.width);
    case StepKind::add_position:
      return kernels_->add(out, tensor(step.weight) + uint64_t{info.position + step.offset} * step.width,
                           step.width);
    case StepKind::add:
      return kernels_->add(out, in, step.width);
    case StepKind::head_norm:
      for (uint32_t at = 0; at < step.width; at += step.head) {
        float* head = out + step.column + at;
        kernels_->layer_norm(head, tensor(step.weight), tensor(step.bias), step.eps, step.head, head);
      }
      return;
    case StepKind::head_rms_norm:
      for (uint32_t at = 0; at < step.width; at += step.head) {
        float* head = out + step.column + at;
        kernels_->rms_norm(head, tensor(step.weight), step.eps, step.head, head);
      }
      return;
    case StepKind::clip:
      for (float& value : std::span(out + step.column, step.width))
        value = std::clamp(value, -step.threshold, step.threshold);
      return;
    case StepKind::rope:
      return rotate(step, i);
    case StepKind::store_kv:
      return kv_.store(*kernels_, step.layer, info.sequence, info.position, in + step.column,
                       in + step.offset);
    case StepKind::reorder: {
      const float* const order = tensor(step.weight);
      for (uint32_t c = 0; c < step.width; ++c) out[c] = in[static_cast<uint32_t>(order[c])];
      return;
    }
    case StepKind::activate:
      return kernels_->activate(step.activation, step.threshold, in, nullptr, step.width, out);
    case StepKind::activate_mul:
      return kernels_->activate(step.activation, step.threshold, in, in + step.width, step.width, out);
    case StepKind::attend:
    case StepKind::route:
      break;
  }
  TIERD_CHECK(false);
}

void Executor::attend(const Step& step, std::span<const RowInfo> rows) {
  const AttentionShape& shape = plan_.attention;
  uint64_t positions = 0;
  for (const RowInfo& info : rows) positions += info.position + 1;
  team_->run(rows.size() * shape.n_heads, 1, positions * shape.n_heads * shape.head_dim / kFloatsPerNs,
             [&](uint64_t begin, uint64_t end, uint32_t worker) {
               for (uint64_t task = begin; task < end; ++task) {
                 const auto i = static_cast<uint32_t>(task / shape.n_heads);
                 const auto head = static_cast<uint32_t>(task % shape.n_heads);
                 const uint64_t column = step.column + uint64_t{head} * shape.head_dim;
                 kv_.attend(*kernels_, step.layer, rows[i].sequence, rows[i].position, head,
                            row(step.in, i) + column, workers_[worker].scores.data(),
                            row(step.out, i) + column);
               }
             });
}

// The angles of a batch are the same in every layer, so they are computed once.
void Executor::prepare_rotation(std::span<const RowInfo> rows) {
  const auto same = [&] {
    if (rotation_positions_.size() != rows.size()) return false;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rotation_positions_[i] != rows[i].position) return false;
    }
    return true;
  };
  if (same()) return;
  rotation_positions_.clear();
  rotation_.clear();
  for (const RowInfo& info : rows) {
    rotation_positions_.push_back(info.position);
    for (const float frequency : plan_.attention.frequencies) {
      const float angle = static_cast<float>(info.position) * frequency;
      rotation_.push_back(std::cos(angle));
      rotation_.push_back(std::sin(angle));
    }
  }
}

void Executor::rotate(const Step& step, uint32_t i) {
  const auto half = static_cast<uint32_t>(plan_.attention.frequencies.size());
  const bool interleaved = plan_.attention.rope == RopeStyle::interleaved;
  const float* angles = rotation_.data() + uint64_t{i} * half * 2;
  float* heads = row(step.out, i) + step.column;
  for (uint32_t head = 0; head < step.width / plan_.attention.head_dim; ++head) {
    float* v = heads + uint64_t{head} * plan_.attention.head_dim;
    for (uint32_t j = 0; j < half; ++j) {
      float& a = interleaved ? v[2 * j] : v[j];
      float& b = interleaved ? v[2 * j + 1] : v[j + half];
      const float cosine = angles[2 * j];
      const float sine = angles[2 * j + 1];
      const float rotated = a * cosine - b * sine;
      b = b * cosine + a * sine;
      a = rotated;
    }
  }
}

}  // namespace tierd
