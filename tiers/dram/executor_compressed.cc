// Compressed neurons: rows and experts are multiplied straight from them, bundles and columns are expanded
// first.
#include <algorithm>

#include "core/base/check.h"
#include "tiers/dram/executor.h"
#include "tiers/dram/work_cost.h"

namespace tierd {
namespace {

// Dense bytes that are expanded at a time, at least one run, and computed from while they are in a cache.
constexpr uint64_t kExpandedBytes = 2 << 20;

}  // namespace

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
  if (kernels_->expand_bitmap(compressed.bitmap, piece.weights, piece.values, elements, out) != nullptr)
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
    team_->run(some.size(), std::max<uint64_t>(1, kGrainBytes / dense), cost_of(some.size() * dense, 1),
               [&](uint64_t from, uint64_t to, uint32_t worker) {
                 for (uint64_t k = from; k < to; ++k) {
                   const Unit& unit = some[k];
                   expanded_units_[k] = {unit.unit, static_cast<uint32_t>(k * dense / kPlaceUnit)};
                   const Piece piece =
                       piece_of(site, edition, unit.unit, memory + unit.place * kPlaceUnit, 0);
                   const std::byte* const next =
                       kernels_->expand_bitmap(compressed->bitmap, piece.weights, piece.values,
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

}  // namespace tierd
