#include "core/store/extent_packer.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/model/layout/codec.h"
#include "core/model/layout/column.h"
#include "core/model/layout/row_group.h"
#include "core/model/sound_values.h"
#include "core/store/channel_order.h"
#include "core/store/column_source.h"

namespace tierd {
namespace {

// Bundles packed at once: one read of each row of down covers their columns, some kilobytes.
constexpr uint32_t kBundlesAtOnce = 1024;
// Rows of a matrix that are packed at once.
constexpr uint32_t kRowsAtOnce = 1024;
static_assert(kRowsAtOnce % kGroupRows == 0);
// Channels of a layer that are packed at once; all are decoded to floats before they are encoded again.
constexpr uint32_t kChannelsAtOnce = 256;
// With a channel order the channels of a run are scattered over the rows, and each row is decoded as a whole;
// a longer run decodes it fewer times.
constexpr uint32_t kOrderedAtOnce = 1024;

// Reads `count` values that start at value `first` of the tensor, as `encoding`; the range starts and ends at
// block boundaries of both encodings.
Status read_values(const TensorSource& source, const TensorInfo& tensor, uint64_t first, uint64_t count,
                   Encoding encoding, std::span<std::byte> out) {
  const uint64_t offset = encoded_bytes(tensor.encoding, first);
  if (tensor.encoding == encoding) {
    TIERD_TRY(source.read(tensor, offset, out));
    return expect_finite(source, tensor, first, out);
  }
  std::vector<std::byte> encoded(encoded_bytes(tensor.encoding, count));
  TIERD_TRY(source.read(tensor, offset, encoded));
  std::vector<float> values(count);
  decode(tensor.encoding, encoded, values);
  if (const auto lost = first_lost_value(encoding, values)) {
    const uint64_t at = first + *lost;
    return lost_value(source, tensor, at / tensor.cols, at % tensor.cols, values[*lost], encoding);
  }
  encode(encoding, values, out);
  return {};
}

// Packs rows in plain order into row groups.
void pack_groups(Encoding encoding, uint32_t rows, uint32_t cols, std::span<const std::byte> plain,
                 std::span<std::byte> out) {
  const uint64_t row_bytes = encoded_bytes(encoding, cols);
  const uint64_t bytes_per_group = group_bytes(encoding, cols);
  for (uint32_t first = 0; first < rows; first += kGroupRows) {
    const uint32_t count = std::min(kGroupRows, rows - first);
    pack_row_group(encoding, count, cols, plain.subspan(first * row_bytes, count * row_bytes),
                   out.subspan(first / kGroupRows * bytes_per_group, bytes_per_group));
  }
}

// Returns the first extent of the interleaved extents that a site belongs to: that of the first layer of its
// layer group, or the site's own.
uint32_t first_of(const StoredSite& site, uint32_t layer_group) {
  return site.first_extent - (site.stride > 1 ? site.layer % layer_group : 0);
}

}  // namespace

ExtentPacker::ExtentPacker(const TensorSource& source, const Manifest& plan)
    : source_(source), plan_(plan), contents_(plan.extents.size()) {
  for (const ResidentTensor& resident : plan.resident) contents_[resident.extent].resident = &resident;
  for (const StoredSite* site : plan.stored()) {
    for (uint64_t extent = site->first_extent; extent < site->end_extent(); ++extent) {
      const auto held = site->held_by(static_cast<uint32_t>(extent));
      if (held) contents_[extent] = {site, held->neuron, held->piece, nullptr};
    }
    if (!is_cut_into<Columns>(site->cut)) continue;
    if (auto order = channel_order(source, site->name)) orders_.emplace(site, std::move(*order));
  }
}

uint32_t ExtentPacker::run_of(uint32_t extent) const {
  const Content& content = contents_[extent];
  if (content.site == nullptr || content.site->n_column_parts() == 0) return 1;
  const StoredSite& site = *content.site;
  const uint32_t channels = plan_.config.channel_order ? kOrderedAtOnce : kChannelsAtOnce;
  const uint32_t at_once = (is_cut_into<Columns>(site.cut) ? channels : kBundlesAtOnce) * site.stride;
  const uint32_t of_piece = site.neurons() * site.stride;
  const uint32_t index = (extent - first_of(site, plan_.layer_group)) % of_piece;
  return std::min(at_once - index % at_once, of_piece - index);
}

Status ExtentPacker::pack(uint32_t first, uint32_t count, std::span<std::byte> out,
                          std::span<uint64_t> checksums) const {
  const Content& content = contents_[first];
  if (content.resident != nullptr) {
    TIERD_TRY(pack_resident(*content.resident, out));
  } else {
    TIERD_TRY(
        std::visit([&](const auto& cut) { return pack_neurons(cut, first, count, out); }, content.site->cut));
  }
  uint64_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t bytes = plan_.extents[first + i].bytes;
    checksums[i] = checksum(out.subspan(at, bytes));
    at += bytes;
  }
  return {};
}

Status ExtentPacker::pack_neurons(const Bundles& bundles, uint32_t first, uint32_t count,
                                  std::span<std::byte> out) const {
  const Content& content = contents_[first];
  const StoredSite& site = *content.site;
  std::vector<uint32_t> neurons(count);
  std::iota(neurons.begin(), neurons.end(), content.neuron);
  const uint64_t stride = plan_.extents[first].bytes;
  std::ranges::fill(out, std::byte{0});
  if (site.pieces > 1) return pack_piece(site, content.piece, neurons, stride, out);
  for (uint32_t piece = 0; piece < site.parts.size(); ++piece)
    TIERD_TRY(pack_piece(site, piece, neurons, stride,
                         out.subspan(piece * bundles.bundle(site.encodings).piece_bytes())));
  return {};
}

Status ExtentPacker::pack_piece(const StoredSite& site, uint32_t piece, std::span<const uint32_t> neurons,
                                uint64_t stride, std::span<std::byte> out) const {
  const std::span<const SitePart> part(&site.parts[piece], 1);
  if (site.is_column(piece)) return pack_columns(site, part, neurons, stride, out);
  const TensorInfo& tensor = tensor_of(source_, part.front());
  const uint32_t cols = inputs(site.cut);
  const Encoding encoding = site.encodings[piece];
  for (size_t i = 0; i < neurons.size(); ++i) {
    TIERD_TRY(read_values(source_, tensor, uint64_t{neurons[i]} * cols, cols, encoding,
                          out.subspan(i * stride, encoded_bytes(encoding, cols))));
  }
  return {};
}

Status ExtentPacker::pack_neurons(const Columns& /*cut*/, uint32_t first, uint32_t count,
                                  std::span<std::byte> out) const {
  const uint32_t layers = contents_[first].site->stride;
  const uint64_t extent_bytes = plan_.extents[first].bytes;
  std::ranges::fill(out, std::byte{0});
  // The run may begin and end within a channel, so each layer has its own first channel and its own count.
  for (uint32_t i = 0; i < std::min(layers, count); ++i) {
    const Content& content = contents_[first + i];
    std::vector<uint32_t> channels((count - i + layers - 1) / layers);
    std::iota(channels.begin(), channels.end(), content.neuron);
    if (const auto order = orders_.find(content.site); order != orders_.end()) {
      for (uint32_t& channel : channels) channel = order->second[channel];
    }
    TIERD_TRY(pack_columns(*content.site, content.site->column_parts(), channels, layers * extent_bytes,
                           out.subspan(i * extent_bytes)));
  }
  return {};
}

Status ExtentPacker::pack_columns(const StoredSite& site, std::span<const SitePart> parts,
                                  std::span<const uint32_t> columns, uint64_t stride,
                                  std::span<std::byte> out) const {
  const uint64_t apart = site.column().values();
  std::vector<float> values(columns.size() * apart);
  uint64_t row = 0;
  for (const SitePart& part : parts) {
    const TensorInfo& tensor = tensor_of(source_, part);
    TIERD_TRY(read_columns(source_, tensor, columns, apart, std::span(values).subspan(row)));
    row += tensor.rows;
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    const std::span<const float> column = std::span(values).subspan(i * apart, apart);
    if (const auto lost = first_lost_value(site.column().encoding, column)) {
      uint64_t lost_row = *lost;
      const SitePart* part = parts.data();
      for (; lost_row >= tensor_of(source_, *part).rows; ++part) lost_row -= tensor_of(source_, *part).rows;
      return lost_value(source_, tensor_of(source_, *part), lost_row, columns[i], column[*lost],
                        site.column().encoding);
    }
    encode_column(site.column().encoding, column, out.subspan(i * stride, site.column().encoded()));
  }
  return {};
}

Status ExtentPacker::pack_neurons(const Rows& cut, uint32_t first, uint32_t /*count*/,
                                  std::span<std::byte> out) const {
  const auto& [site, neuron, piece, resident] = contents_[first];
  const uint32_t rows = cut.rows_of(neuron);
  const Encoding encoding = cut.encoding_of(neuron, site->encodings);
  const uint64_t row_bytes = encoded_bytes(encoding, cut.n_in);
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(rows * row_bytes);
  const std::span plain(buffer.get(), rows * row_bytes);
  TIERD_TRY(read_rows(*site, cut, neuron, plain));
  pack_groups(encoding, rows, cut.n_in, plain, out);
  const auto padding = out.subspan(cut.bytes(site->encodings, neuron));
  std::fill(padding.begin(), padding.end(), std::byte{0});
  return {};
}

Status ExtentPacker::pack_neurons(const Experts& cut, uint32_t first, uint32_t /*count*/,
                                  std::span<std::byte> out) const {
  const StoredSite& site = *contents_[first].site;
  const uint32_t expert = contents_[first].neuron;
  std::ranges::fill(out, std::byte{0});
  const ExpertMatrices matrices = cut.matrices(site.encodings);
  for (const auto& [part, offset] : {std::pair{0, uint64_t{0}}, std::pair{1, matrices.up_offset()},
                                     std::pair{2, matrices.down_offset()}}) {
    const TensorInfo* tensor = source_.find(tensor_of_expert(site.parts[part], expert));
    TIERD_CHECK_MSG(tensor != nullptr, site.parts[part].tensor);
    TIERD_TRY(pack_matrix(*tensor, site.encodings[part], out.subspan(offset)));
  }
  return {};
}

Status ExtentPacker::pack_matrix(const TensorInfo& tensor, Encoding encoding,
                                 std::span<std::byte> out) const {
  const auto cols = static_cast<uint32_t>(tensor.cols);
  const uint64_t row_bytes = encoded_bytes(encoding, cols);
  std::vector<std::byte> plain(std::min<uint64_t>(tensor.rows, kRowsAtOnce) * row_bytes);
  for (uint64_t row = 0; row < tensor.rows; row += kRowsAtOnce) {
    const auto rows = static_cast<uint32_t>(std::min<uint64_t>(kRowsAtOnce, tensor.rows - row));
    const std::span<std::byte> part = std::span(plain).first(rows * row_bytes);
    TIERD_TRY(read_values(source_, tensor, row * cols, uint64_t{rows} * cols, encoding, part));
    pack_groups(encoding, rows, cols, part, out.subspan(row * row_bytes));
  }
  return {};
}

Status ExtentPacker::pack_resident(const ResidentTensor& resident, std::span<std::byte> out) const {
  const TensorInfo* tensor = source_.find(resident.name);
  TIERD_CHECK_MSG(tensor != nullptr, resident.name);
  const uint64_t values = resident.rows * resident.cols;
  const uint64_t bytes = encoded_bytes(Encoding::f32, values);
  const auto padding = out.subspan(bytes);
  std::fill(padding.begin(), padding.end(), std::byte{0});
  return read_values(source_, *tensor, 0, values, Encoding::f32, out.first(bytes));
}

Status ExtentPacker::read_rows(const StoredSite& site, const Rows& cut, uint32_t neuron,
                               std::span<std::byte> out) const {
  const uint32_t first = cut.first_row(neuron);
  const uint32_t count = cut.rows_of(neuron);
  const Encoding encoding = cut.encoding_of(neuron, site.encodings);
  const uint64_t row_bytes = encoded_bytes(encoding, cut.n_in);
  uint32_t part_begin = 0;
  for (const SitePart& part : site.parts) {
    const uint32_t part_end = part_begin + part.rows;
    const uint32_t from = std::max(first, part_begin);
    const uint32_t to = std::min(first + count, part_end);
    if (from < to) {
      TIERD_TRY(read_values(source_, tensor_of(source_, part), uint64_t{from - part_begin} * cut.n_in,
                            uint64_t{to - from} * cut.n_in, encoding,
                            out.subspan((from - first) * row_bytes, (to - from) * row_bytes)));
    }
    part_begin = part_end;
  }
  return {};
}

}  // namespace tierd
