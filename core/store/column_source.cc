#include "core/store/column_source.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/model/layout/codec.h"

namespace tierd {

const TensorInfo& tensor_of(const TensorSource& source, const SitePart& part) {
  const TensorInfo* tensor = source.find(part.tensor);
  TIERD_CHECK_MSG(tensor != nullptr, part.tensor);
  return *tensor;
}

std::vector<const TensorInfo*> tensors_of(const TensorSource& source, const StoredSite& site,
                                          const SitePart& part) {
  const auto* experts = std::get_if<Experts>(&site.cut);
  if (experts == nullptr) return {&tensor_of(source, part)};
  std::vector<const TensorInfo*> tensors;
  for (uint32_t expert = 0; expert < experts->experts; ++expert) {
    tensors.push_back(source.find(tensor_of_expert(part, expert)));
    TIERD_CHECK_MSG(tensors.back() != nullptr, part.tensor);
  }
  return tensors;
}

Status read_columns(const TensorSource& source, const TensorInfo& tensor, std::span<const uint32_t> columns,
                    uint64_t apart, std::span<float> out) {
  return read_columns(source, tensor, 0, tensor.rows, columns, apart, out);
}

Status read_columns(const TensorSource& source, const TensorInfo& tensor, uint64_t first, uint64_t rows,
                    std::span<const uint32_t> columns, uint64_t apart, std::span<float> out) {
  if (columns.empty()) return {};
  const auto [least, most] = std::ranges::minmax(columns);
  // Reads whole blocks, because the values of a block share bytes.
  const uint32_t block = block_values(tensor.encoding);
  const uint64_t begin = least / block * block;
  const uint64_t end = align_up(uint64_t{most} + 1, block);
  std::vector<std::byte> encoded(encoded_bytes(tensor.encoding, end - begin));
  std::vector<float> values(end - begin);
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t at = encoded_bytes(tensor.encoding, (first + row) * tensor.cols + begin);
    TIERD_TRY(source.read(tensor, at, encoded));
    decode(tensor.encoding, encoded, values);
    for (size_t i = 0; i < columns.size(); ++i) out[i * apart + row] = values[columns[i] - begin];
  }
  return {};
}

}  // namespace tierd
