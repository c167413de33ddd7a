#include "core/model/layout/column.h"

#include <cstring>
#include <vector>

#include "core/base/check.h"
#include "core/model/layout/codec.h"

namespace tierd {
namespace {

// Calls move(plain, place) for each block: its offset in the plain order and its position in the column.
template <class Move>
void for_each_block(Encoding e, uint64_t bytes, const Move& move) {
  const auto blocks = static_cast<uint32_t>(bytes / block_bytes(e));
  for (uint32_t block = 0; block < blocks; ++block)
    move(uint64_t{block} * block_bytes(e), place_in_column(e, blocks, block));
}

}  // namespace

void encode_column(Encoding e, std::span<const float> values, std::span<std::byte> column) {
  TIERD_CHECK(has_columns(e) && column.size() == encoded_bytes(e, values.size()));
  if (!is_quantized(e)) return encode(e, values, column);
  std::vector<std::byte> plain(column.size());
  encode(e, values, plain);
  for_each_block(e, column.size(), [&](uint64_t block, const BlockPlace& place) {
    std::memcpy(&column[place.scale], &plain[block], kScaleBytes);
    std::memcpy(&column[place.quants], &plain[block + kScaleBytes], quant_bytes(e));
  });
}

void decode_column(Encoding e, std::span<const std::byte> column, std::span<float> values) {
  TIERD_CHECK(has_columns(e) && column.size() == encoded_bytes(e, values.size()));
  if (!is_quantized(e)) return decode(e, column, values);
  std::vector<std::byte> plain(column.size());
  for_each_block(e, column.size(), [&](uint64_t block, const BlockPlace& place) {
    std::memcpy(&plain[block], &column[place.scale], kScaleBytes);
    std::memcpy(&plain[block + kScaleBytes], &column[place.quants], quant_bytes(e));
  });
  decode(e, plain, values);
}

}  // namespace tierd
