#include "core/model/tensor_source.h"

#include <algorithm>

#include "core/model/layout/codec.h"

namespace tierd {

const TensorInfo* TensorSource::find(std::string_view wanted) const {
  const auto& all = tensors();
  const auto it = std::find_if(all.begin(), all.end(), [&](const TensorInfo& t) { return t.name == wanted; });
  return it == all.end() ? nullptr : &*it;
}

Result<std::vector<float>> TensorSource::read_f32(const TensorInfo& tensor) const {
  std::vector<std::byte> encoded(tensor.bytes());
  TIERD_TRY(read(tensor, 0, encoded));
  std::vector<float> values(tensor.rows * tensor.cols);
  decode(tensor.encoding, encoded, values);
  return values;
}

}  // namespace tierd
