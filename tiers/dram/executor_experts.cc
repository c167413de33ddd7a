// Experts of a mixture: the router's choice, and the results of experts. Whole experts are computed here;
// experts cut into columns are computed as any columns.
#include <algorithm>

#include "tiers/dram/choose_experts.h"
#include "tiers/dram/executor.h"
#include "tiers/dram/work_cost.h"

namespace tierd {

void Executor::route(const Step& step, uint32_t rows) {
  const uint32_t n_in = plan_.buffers[step.in].width;
  const float* weight = tensors_[step.weight];
  const uint64_t row_bytes = n_in * sizeof(float);
  ups_.resize(step.width);
  for (uint32_t e = 0; e < step.width; ++e)
    ups_[e] = reinterpret_cast<const std::byte*>(weight + uint64_t{e} * n_in);
  team_->run(step.width, std::max<uint64_t>(1, kGrainBytes / row_bytes),
             cost_of(step.width * row_bytes, rows), [&](uint64_t begin, uint64_t end, uint32_t) {
               kernels_->dots(Encoding::f32, std::span(ups_).subspan(begin, end - begin), n_in,
                              row(step.in, 0), strides_[step.in], rows, row(step.out, 0) + begin,
                              strides_[step.out]);
             });
  team_->run(
      rows, 1, uint64_t{rows} * step.width * step.picks / kFloatsPerNs,
      [&](uint64_t begin, uint64_t end, uint32_t) {
        for (uint64_t i = begin; i < end; ++i)
          choose_experts({row(step.out, static_cast<uint32_t>(i)), step.width}, step.picks, step.sum_to_one);
      });
}

void Executor::pick(const Step& step, const RowInfo& info, float* out) {
  const float* const picked = row(step.in, info.row);
  if (step.weight == kNoTensor) {
    std::copy_n(picked, step.width, out);
    return;
  }
  const float* const order = tensors_[step.weight];
  for (uint32_t c = 0; c < step.width; ++c) out[c] = picked[static_cast<uint32_t>(order[c])];
}

void Executor::add_chosen(const Step& step, const RowInfo& info, const float* given) {
  const auto* const column = reinterpret_cast<const std::byte*>(given);
  kernels_->add_weighted({Encoding::f32, step.width, {&column, 1}}, 0, step.width,
                         row(step.choice, info.row) + step.column, 1, 1, row(step.out, info.row),
                         strides_[step.out]);
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
  team_->run(n_lines, 1, uint64_t{n_lines} * cut.inner / kFloatsPerNs,
             [&](uint64_t begin, uint64_t end, uint32_t) {
               for (uint64_t i = begin; i < end; ++i) {
                 const float* gate = row(ffn.up, static_cast<uint32_t>(i));
                 kernels_->activate(ffn.activation, ffn.threshold, gate, gate + inner_rows, cut.inner,
                                    row(ffn.hidden, static_cast<uint32_t>(i)));
               }
             });

  pieces.clear();
  groups = bytes = 0;
  for (const ExpertPart& part : experts_)
    add(part, matrices.down_offset(), matrices.down, cut.inner, matrices.outer_groups(), 0);
  multiply({cut.inner, ffn.hidden, buffers.results, false}, pieces, groups, bytes, rows_a_read);
}

void Executor::add_experts(const SiteWork& site, const Experts& cut) {
  const uint64_t blocks = (uint64_t{cut.width} + kQuantBlock - 1) / kQuantBlock;
  const uint64_t cost = uint64_t{cut.width} * lines_.size() / kFloatsPerNs;
  team_->run(blocks, std::max<uint64_t>(1, blocks / team_->workers()), cost,
             [&](uint64_t begin, uint64_t end, uint32_t) {
               const auto first = static_cast<uint32_t>(begin * kQuantBlock);
               const auto last = static_cast<uint32_t>(std::min<uint64_t>(end * kQuantBlock, cut.width));
               for (const ExpertPart& part : experts_) {
                 for (uint32_t k = part.first_line; k < part.first_line + part.lines; ++k) {
                   const auto* given = reinterpret_cast<const std::byte*>(row(site.experts.results, k));
                   const uint32_t i = lines_[k];
                   kernels_->add_weighted({Encoding::f32, cut.width, {&given, 1}}, first, last,
                                          row(site.experts.choice, i) + part.number, 1, 1, row(site.out, i),
                                          strides_[site.out]);
                 }
               }
             });
}

}  // namespace tierd
