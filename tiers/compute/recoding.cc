#include "tiers/compute/recoding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/model/layout/codec.h"
#include "core/model/layout/column.h"
#include "core/model/layout/row_group.h"

namespace tierd {
namespace {

bool has_kernel(Encoding from, Encoding to) {
  return !is_quantized(from) && (to == Encoding::q8_0 || to == Encoding::q4_0);
}

using Form = NeuronRecoding::Form;

// Returns the values of a row, a column or a row group, row after row.
std::vector<float> values_of(Form form, Encoding encoding, uint32_t values, const std::byte* in) {
  const uint64_t bytes = encoded_bytes(encoding, values);
  if (form != Form::group) {
    std::vector<float> all(values);
    form == Form::row ? decode(encoding, {in, bytes}, all) : decode_column(encoding, {in, bytes}, all);
    return all;
  }
  std::vector<float> all(uint64_t{kGroupRows} * values);
  for (uint32_t row = 0; row < kGroupRows; ++row)
    unpack_row(encoding, row, {in, kGroupRows * bytes},
               std::span(all).subspan(uint64_t{row} * values, values));
  return all;
}

}  // namespace

NeuronRecoding::NeuronRecoding(const Cut& cut, const Encodings& from, const Encodings& to)
    : from_bytes_(neuron_bytes(cut, from, 0)), to_bytes_(neuron_bytes(cut, to, 0)) {
  if (const auto* const bundles = std::get_if<Bundles>(&cut)) {
    const Bundle before = bundles->bundle(from), after = bundles->bundle(to);
    const Part row{Form::row, before.encoding, after.encoding, before.cols};
    Part column = row;
    column.form = Form::column;
    if (before.gated) add_part(row, 1, 0, 0, after.up_offset());
    add_part(row, 1, before.up_offset(), after.up_offset(), after.down_offset());
    add_part(column, 1, before.down_offset(), after.down_offset(), to_bytes_);
    return;
  }
  const auto& experts = std::get<Experts>(cut);
  const ExpertMatrices before = experts.matrices(from), after = experts.matrices(to);
  add_part({Form::group, before.gate, after.gate, before.width}, before.inner_groups(), 0, 0,
           after.up_offset());
  add_part({Form::group, before.up, after.up, before.width}, before.inner_groups(), before.up_offset(),
           after.up_offset(), after.down_offset());
  add_part({Form::group, before.down, after.down, before.inner}, before.outer_groups(), before.down_offset(),
           after.down_offset(), to_bytes_);
}

// The last piece extends to `end`, padding included.
void NeuronRecoding::add_part(const Part& part, uint32_t pieces, uint64_t from, uint64_t to, uint64_t end) {
  const uint32_t rows = part.form == Form::group ? kGroupRows : 1;
  const uint64_t in = rows * encoded_bytes(part.from, part.values);
  const uint64_t out = rows * encoded_bytes(part.to, part.values);
  for (uint32_t i = 0; i < pieces; ++i) {
    const uint64_t begin = to + i * out;
    pieces_.push_back({{from + i * in, in, begin, i + 1 == pieces ? end - begin : out},
                       static_cast<uint32_t>(parts_.size())});
  }
  parts_.push_back(part);
}

uint64_t NeuronRecoding::largest_piece() const {
  uint64_t most = 0;
  for (const PlacedPiece& piece : pieces_) most = std::max(most, piece.bytes.to_bytes);
  return most;
}

void NeuronRecoding::encode(const ComputeKernels& kernels, size_t piece, const std::byte* in,
                            std::byte* out) const {
  const PlacedPiece& placed = pieces_[piece];
  const Part& part = parts_[placed.part];
  uint64_t bytes = encoded_bytes(part.to, part.values);
  switch (part.form) {
    case Form::row:
      encode_row(part, kernels, in, out);
      break;
    case Form::column:
      encode_column(part, kernels, in, out);
      break;
    case Form::group:
      encode_group(part, in, out);
      bytes *= kGroupRows;
      break;
  }
  std::memset(out + bytes, 0, placed.bytes.to_bytes - bytes);
}

void NeuronRecoding::add_loss(size_t piece, const std::byte* in, const std::byte* out, Loss& loss) const {
  const Part& part = parts_[pieces_[piece].part];
  const std::vector<float> before = values_of(part.form, part.from, part.values, in);
  const std::vector<float> after = values_of(part.form, part.to, part.values, out);
  for (size_t i = 0; i < before.size(); ++i) {
    const double error = double{after[i]} - before[i];
    loss.lost += error * error;
    loss.whole += double{before[i]} * before[i];
  }
}

double NeuronRecoding::Loss::share() const {
  return whole == 0 ? 0 : std::sqrt(lost / whole);
}

void NeuronRecoding::encode_neuron(const ComputeKernels& kernels, const std::byte* in, std::byte* out) const {
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i].bytes;
    encode(kernels, i, in + piece.from, out + piece.to);
  }
}

void NeuronRecoding::encode_row(const Part& part, const ComputeKernels& kernels, const std::byte* in,
                                std::byte* out) {
  if (has_kernel(part.from, part.to)) {
    const uint32_t block = block_bytes(part.to);
    return kernels.encode_blocks(part.from, in, part.values / kQuantBlock, part.to,
                                 {out, block, out + kScaleBytes, block});
  }
  tierd::encode(part.to, values_of(part.form, part.from, part.values, in),
                {out, encoded_bytes(part.to, part.values)});
}

// Encodes strip by strip.
void NeuronRecoding::encode_column(const Part& part, const ComputeKernels& kernels, const std::byte* in,
                                   std::byte* out) {
  if (!has_kernel(part.from, part.to)) {
    return tierd::encode_column(part.to, values_of(part.form, part.from, part.values, in),
                                {out, encoded_bytes(part.to, part.values)});
  }
  const uint32_t blocks = part.values / kQuantBlock;
  for (uint32_t first = 0; first < blocks; first += kStripBlocks) {
    const BlockPlace place = place_in_column(part.to, blocks, first);
    kernels.encode_blocks(part.from, in + uint64_t{first} * kQuantBlock * block_bytes(part.from),
                          std::min(kStripBlocks, blocks - first), part.to,
                          {out + place.scale, kScaleBytes, out + place.quants, quant_bytes(part.to)});
  }
}

void NeuronRecoding::encode_group(const Part& part, const std::byte* in, std::byte* out) {
  const uint64_t row_bytes = encoded_bytes(part.to, part.values);
  std::vector<std::byte> plain(kGroupRows * row_bytes);
  tierd::encode(part.to, values_of(part.form, part.from, part.values, in), plain);
  pack_row_group(part.to, kGroupRows, part.values, plain, {out, kGroupRows * row_bytes});
}

std::vector<std::optional<NeuronRecoding>> recodings_of(const ComputePlan& plan) {
  std::vector<std::optional<NeuronRecoding>> recodings(plan.made.size());
  for (uint32_t e = 0; e < recodings.size(); ++e) {
    const MadeNeurons* const made = plan.recoded_of(e);
    if (made != nullptr)
      recodings[e].emplace(plan.sites[made->site].cut, plan.editions[made->of], plan.editions[e]);
  }
  return recodings;
}

}  // namespace tierd
