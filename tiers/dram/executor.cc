#include "tiers/dram/executor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/base/row_mask.h"
#include "tiers/dram/work_cost.h"

namespace tierd {
namespace {

// Bytes of one worker's sums at a time, so that they stay in its L2 cache from run to run.
constexpr uint64_t kSumBytes = 256 << 10;
// Dense bytes that are expanded at a time, at least one run, and computed from while they are in a cache.
constexpr uint64_t kExpandedBytes = 2 << 20;

}  // namespace

Result<Executor> Executor::create(ComputePlan plan, const ComputeKernels& kernels, Team& team) {
  TIERD_ASSIGN(ReservedMemory activations, ReservedMemory::reserve(buffer_offsets(plan).back()));
  TIERD_ASSIGN(KvCache kv, KvCache::create(plan));
  auto values = std::make_unique<PlannedValues>(
      PlannedValues{std::move(plan), kernels, team, std::move(activations), {}, {}, {}});
  values->offsets = buffer_offsets(values->plan);
  for (const BufferSpec& buffer : values->plan.buffers) values->strides.push_back(buffer_stride(buffer));
  return Executor(std::move(values), std::move(kv));
}

Executor::Executor(std::unique_ptr<PlannedValues> values, KvCache kv)
    : values_(std::move(values)), segments_(*values_, std::move(kv)), workers_(team_.workers()) {}

void Executor::set_tensor(TensorId id, const float* data) {
  if (id >= values_->tensors.size()) values_->tensors.resize(id + 1u);
  values_->tensors[id] = data;
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
  segments_.run(site.before, rows);
  quantize_input(site, static_cast<uint32_t>(rows.size()));
}

void Executor::quantize_input(const SiteWork& site, uint32_t rows) {
  if (!uses_int8(site) || site.gather) return;
  quantized_.resize(rows, inputs(site.cut));
  team_.run(rows, 1, uint64_t{rows} * inputs(site.cut) / kFloatsPerNs,
            [&](uint64_t begin, uint64_t end, uint32_t worker) {
              for (uint64_t i = begin; i < end; ++i) {
                const auto r = static_cast<uint32_t>(i);
                kernels_.quantize_row(row(site.in, r), r, quantized_, workers_[worker].squares);
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
  if (cut == nullptr) return kernels_.add(out + take.first, results + take.first, take.columns);
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
  segments_.run(plan_.sites[s].after, rows);
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
  team_.run(groups, std::max<uint64_t>(1, kGrainBytes * groups / bytes), cost_of(bytes, rows),
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
        int8 ? multiply_bitmap_int8(kernels_, rows, quantized_, piece.first_input, piece.inputs, out, ldy,
                                    dense)
             : multiply_bitmap(kernels_, rows, x, ldx, piece.inputs, out, ldy, dense);
    const bool last = piece.whole && skip + groups == piece.groups;
    workers_[worker].malformed |= next == nullptr || (last && next != rows.values.end);
    return;
  }
  const std::byte* const weights = piece.weights + skip * group_bytes(e, product.n_in);
  if (int8) {
    kernels_.matmul_int8(e, weights, groups, product.n_in, quantized_, piece.first_input, piece.inputs, out,
                         ldy);
  } else {
    kernels_.matmul(e, weights, groups, product.n_in, x, ldx, piece.inputs, out, ldy);
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
    kernels_.dots(bundle.encoding, std::span(weights).subspan(begin, end - begin), bundle.cols, x, ldx, rows,
                  row(out, 0) + begin, strides_[out]);
    if (bias == kNoTensor) return;
    for (uint32_t i = 0; i < rows; ++i) {
      for (uint64_t k = begin; k < end; ++k) row(out, i)[k] += tensors_[bias][units[k].unit];
    }
  };
  const Column column = {bundle.encoding, bundle.cols};
  float* const lengths = asked.measure ? column_lengths(site, edition) : nullptr;
  const uint64_t dot_bytes = bundle.down_offset();
  team_.run(n, std::max<uint64_t>(1, kGrainBytes / dot_bytes), cost_of(n * dot_bytes, rows),
            [&](uint64_t begin, uint64_t end, uint32_t) {
              sums(cut.gated ? gates_ : ups_, cut.gated ? ffn.gate_bias : ffn.up_bias, ffn.hidden, begin,
                   end);
              if (cut.gated) sums(ups_, ffn.up_bias, ffn.up, begin, end);
              for (uint32_t i = 0; i < rows; ++i) {
                float* hidden = row(ffn.hidden, i) + begin;
                const float* factor = cut.gated ? row(ffn.up, i) + begin : nullptr;
                kernels_.activate(ffn.activation, ffn.threshold, hidden, factor,
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
    team_.run(n, 1, cost_of(n * bytes, 1), [&](uint64_t begin, uint64_t end, uint32_t) {
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
  const uint64_t share = (blocks + team_.workers() - 1) / team_.workers();
  const uint64_t in_cache = kSumBytes / sizeof(float) / kQuantBlock / std::max(1U, rows);
  const uint64_t block_of_columns = std::max<uint64_t>(1, n * encoded_bytes(column.encoding, kQuantBlock));
  const uint64_t least = std::max({uint64_t{1}, kGrainBytes / block_of_columns, std::min(share, in_cache)});
  // Shares end at strips, so that each has whole scales.
  const uint64_t grain = least < kStripBlocks ? least : align_up(least, kStripBlocks);
  team_.run(blocks, grain, cost_of(n * column.encoded(), rows),
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
                  kernels_.add_weighted_int8(run, first, last, h, factors.stride, rows, row(site.out, 0),
                                             strides_[site.out], workers_[worker].squares);
                } else {
                  kernels_.add_weighted(run, first, last, h, factors.stride, rows, row(site.out, 0),
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

Executor::Piece Executor::piece_of(const SiteWork& site, uint32_t edition, uint32_t neuron,
                                   const std::byte* at, uint64_t offset) const {
  Piece piece;
  piece.weights = at + offset;
  const CompressedNeurons* const compressed = plan_.compressed_of(edition);
  if (compressed == nullptr) return piece;
  const Bitmap& bitmap = compressed->bitmap;
  const uint64_t bits = bitmap.bits_bytes(neuron_bytes(site.cut, plan_.editions[edition], neuron));
  const uint64_t before = bitmap.bits_bytes(offset);
  const uint64_t values = compressed->bytes[neuron] - bits;
  piece.weights = at + before;
  // The bits before it may announce more values than the neuron has.
  piece.values.at = at + bits + std::min(values, count_bits(at, before) * bitmap.element_bytes);
  piece.values.end = at + bits + values;
  return piece;
}

BitmapRows Executor::compressed_rows(const Piece& piece, uint64_t skip, uint32_t groups, uint32_t cols) {
  const Bitmap bitmap = *Bitmap::of(piece.encoding, true);
  const uint64_t before = bitmap.bits_bytes(skip * group_bytes(piece.encoding, cols));
  BitmapValues values = piece.values;
  const auto left = static_cast<uint64_t>(values.end - values.at);
  values.at += std::min(left, count_bits(piece.weights, before) * bitmap.element_bytes);
  return {piece.encoding, piece.weights + before, values, groups, cols};
}

const std::byte* Executor::expand_group(const Piece& piece, const CompressedNeurons& compressed,
                                        uint64_t bytes) {
  std::byte* const out = room_for(expanded_, bytes);
  const uint64_t elements = bytes / compressed.bitmap.element_bytes;
  if (kernels_.expand_bitmap(compressed.bitmap, piece.weights, piece.values, elements, out) != nullptr)
    return out;
  workers_.front().malformed = true;
  return nullptr;
}

uint64_t Executor::compute_added(const SiteWork& site, uint32_t edition, uint32_t rows,
                                 std::span<const Unit> units, const std::byte* memory, Asked asked) {
  const Encodings& encodings = plan_.editions[edition];
  const auto compute_from = [&](std::span<const Unit> some, const std::byte* at) {
    if (const auto* bundles = std::get_if<Bundles>(&site.cut))
      return compute(site, *bundles, edition, rows, some, at, asked);
    return compute(site, std::get<Columns>(site.cut), edition, rows, some, at, asked);
  };
  const CompressedNeurons* const compressed = plan_.compressed_of(edition);
  if (compressed == nullptr) return compute_from(units, memory);

  const uint64_t dense = neuron_bytes(site.cut, encodings, 0);
  TIERD_CHECK(dense % kPlaceUnit == 0);
  const uint32_t run = run_of(site.cut);
  const uint64_t most = std::max<uint64_t>(run, kExpandedBytes / dense);
  uint64_t bytes = 0;
  for (size_t first = 0; first < units.size();) {
    size_t end = std::min<size_t>(units.size(), first + most);
    // Runs are never split.
    while (end < units.size() && end > first + 1 && units[end].unit / run == units[end - 1].unit / run) --end;
    const std::span<const Unit> some = units.subspan(first, end - first);
    std::byte* const out = room_for(expanded_, some.size() * dense);
    expanded_units_.resize(some.size());
    team_.run(some.size(), std::max<uint64_t>(1, kGrainBytes / dense), cost_of(some.size() * dense, 1),
              [&](uint64_t from, uint64_t to, uint32_t worker) {
                for (uint64_t k = from; k < to; ++k) {
                  const Unit& unit = some[k];
                  expanded_units_[k] = {unit.unit, static_cast<uint32_t>(k * dense / kPlaceUnit)};
                  const Piece piece = piece_of(site, edition, unit.unit, memory + unit.place * kPlaceUnit, 0);
                  const std::byte* const next =
                      kernels_.expand_bitmap(compressed->bitmap, piece.weights, piece.values,
                                             dense / compressed->bitmap.element_bytes, out + k * dense);
                  workers_[worker].malformed |= next != piece.values.end;
                }
              });
    if (std::ranges::any_of(workers_, &Worker::malformed)) return bytes;
    (void)compute_from(expanded_units_, out);
    for (const Unit& unit : some) bytes += compressed->bytes[unit.unit];
    first = end;
  }
  return bytes;
}

// Decoding a column takes a hundred times as long as multiplying with it, and its length never changes: a
// model of 1.5 billion weights took 4 s a step before lengths were kept.
float* Executor::column_lengths(const SiteWork& site, uint32_t edition) {
  if (column_lengths_.size() <= edition) column_lengths_.resize(edition + 1u);
  std::vector<float>& lengths = column_lengths_[edition];
  if (lengths.empty()) lengths.assign(tierd::neurons(site.cut), std::numeric_limits<float>::quiet_NaN());
  return lengths.data();
}

void Executor::measure(const SiteWork& site, const Column& column, std::span<const Unit> units,
                       std::span<const std::byte* const> columns, float* lengths, const float* factors,
                       size_t stride, uint32_t rows, uint64_t begin, uint64_t end) {
  std::vector<float> values(column.values());
  for (uint64_t k = begin; k < end; ++k) {
    float& length = lengths[units[k].unit];
    if (std::isnan(length)) {
      decode_column(column.encoding, {columns[k], column.encoded()}, values);
      double squares = 0;
      for (const float value : values) squares += double{value} * value;
      length = static_cast<float>(std::sqrt(squares));
    }
    for (uint32_t i = 0; i < rows; ++i)
      row(site.contribution, i)[units[k].unit] = std::abs(factors[i * stride + k]) * length;
  }
}

void Executor::tell(const SiteWork& site, std::span<const Unit> units, const float* factors, size_t stride,
                    uint32_t rows) {
  for (uint32_t i = 0; i < rows; ++i) {
    float* const contribution = row(site.contribution, i);
    for (size_t k = 0; k < units.size(); ++k) contribution[units[k].unit] = std::abs(factors[i * stride + k]);
  }
}

// As many experts at a time as scratch has lines for their rows: in decoding all of a message, so that the
// workers synchronize three times and not three times for each expert. The results of each row are added in
// the order of the experts' numbers, whichever were computed together.
uint64_t Executor::compute(const SiteWork& site, const Experts& cut, uint32_t edition, uint32_t rows,
                           std::span<const Unit> units, const std::byte* memory, Asked /*asked*/) {
  experts_.clear();
  lines_.clear();
  const auto finish = [&] {
    if (experts_.empty()) return;
    compute_experts(site, cut, edition);
    add_experts(site, cut);
    experts_.clear();
    lines_.clear();
  };
  for (const Unit& unit : units) {
    const auto uses = [&](uint32_t i) { return row(site.experts.choice, i)[unit.unit] != 0; };
    uint32_t lines = 0;
    for (uint32_t i = 0; i < rows; ++i) lines += uses(i) ? 1 : 0;
    if (lines == 0) continue;
    if (lines_.size() + lines > plan_.max_rows) finish();
    experts_.push_back(
        {unit.unit, memory + unit.place * kPlaceUnit, static_cast<uint32_t>(lines_.size()), lines});
    for (uint32_t i = 0; i < rows; ++i) {
      if (uses(i)) lines_.push_back(i);
    }
  }
  finish();
  const CompressedNeurons* const compressed = plan_.compressed_of(edition);
  if (compressed == nullptr) return units.size() * cut.matrices(plan_.editions[edition]).tensor_bytes();
  uint64_t bytes = 0;
  for (const Unit& unit : units) bytes += compressed->bytes[unit.unit];
  return bytes;
}

void Executor::compute_experts(const SiteWork& site, const Experts& cut, uint32_t edition) {
  const ExpertBuffers& buffers = site.experts;
  const FeedForward& ffn = site.ffn;
  const ExpertMatrices matrices = cut.matrices(plan_.editions[edition]);
  const uint32_t inner_rows = matrices.inner_groups() * kGroupRows;
  const auto n_lines = static_cast<uint32_t>(lines_.size());
  for (uint32_t line = 0; line < n_lines; ++line)
    std::copy_n(row(site.in, lines_[line]), cut.width, row(buffers.inputs, line));

  std::vector<Piece> pieces;
  uint64_t groups = 0;
  uint64_t bytes = 0;
  const auto add = [&](const ExpertPart& part, uint64_t offset, Encoding encoding, uint32_t cols,
                       uint32_t n_groups, uint32_t first_row) {
    Piece piece = piece_of(site, edition, part.number, part.weights, offset);
    piece.encoding = encoding;
    piece.groups = n_groups;
    piece.first_row = first_row;
    piece.first_group = groups;
    piece.first_input = part.first_line;
    piece.inputs = part.lines;
    piece.whole = offset == matrices.down_offset();
    pieces.push_back(piece);
    groups += n_groups;
    bytes += n_groups * group_bytes(encoding, cols);
  };
  for (const ExpertPart& part : experts_) {
    add(part, 0, matrices.gate, cut.width, matrices.inner_groups(), 0);
    add(part, matrices.up_offset(), matrices.up, cut.width, matrices.inner_groups(), inner_rows);
  }
  const auto rows_a_read = static_cast<uint32_t>(n_lines / experts_.size());
  multiply({cut.width, buffers.inputs, ffn.up, false}, pieces, groups, bytes, rows_a_read);
  for (const ExpertPart& part : experts_) {
    add_biases(ffn.gate_bias, part, cut.inner, ffn.up, 0);
    add_biases(ffn.up_bias, part, cut.inner, ffn.up, inner_rows);
  }
  team_.run(n_lines, 1, uint64_t{n_lines} * cut.inner / kFloatsPerNs,
            [&](uint64_t begin, uint64_t end, uint32_t) {
              for (uint64_t i = begin; i < end; ++i) {
                const float* gate = row(ffn.up, static_cast<uint32_t>(i));
                kernels_.activate(ffn.activation, ffn.threshold, gate, gate + inner_rows, cut.inner,
                                  row(ffn.hidden, static_cast<uint32_t>(i)));
              }
            });

  pieces.clear();
  groups = bytes = 0;
  for (const ExpertPart& part : experts_)
    add(part, matrices.down_offset(), matrices.down, cut.inner, matrices.outer_groups(), 0);
  multiply({cut.inner, ffn.hidden, buffers.results, false}, pieces, groups, bytes, rows_a_read);
  for (const ExpertPart& part : experts_) add_biases(ffn.down_bias, part, cut.width, buffers.results, 0);
}

void Executor::add_biases(TensorId biases, const ExpertPart& part, uint32_t width, BufferId buffer,
                          uint32_t column) {
  if (biases == kNoTensor) return;
  const float* const bias = tensors_[biases] + uint64_t{part.number} * width;
  for (uint32_t line = part.first_line; line < part.first_line + part.lines; ++line)
    kernels_.add(row(buffer, line) + column, bias, width);
}

void Executor::add_experts(const SiteWork& site, const Experts& cut) {
  const uint64_t blocks = (uint64_t{cut.width} + kQuantBlock - 1) / kQuantBlock;
  const uint64_t cost = uint64_t{cut.width} * lines_.size() / kFloatsPerNs;
  team_.run(blocks, std::max<uint64_t>(1, blocks / team_.workers()), cost,
            [&](uint64_t begin, uint64_t end, uint32_t) {
              const auto first = static_cast<uint32_t>(begin * kQuantBlock);
              const auto last = static_cast<uint32_t>(std::min<uint64_t>(end * kQuantBlock, cut.width));
              for (const ExpertPart& part : experts_) {
                for (uint32_t k = part.first_line; k < part.first_line + part.lines; ++k) {
                  const auto* given = reinterpret_cast<const std::byte*>(row(site.experts.results, k));
                  const uint32_t i = lines_[k];
                  kernels_.add_weighted({Encoding::f32, cut.width, {&given, 1}}, first, last,
                                        row(site.experts.choice, i) + part.number, 1, 1, row(site.out, i),
                                        strides_[site.out]);
                }
              }
            });
}

}  // namespace tierd
