#include "core/store/tensor_table.h"

#include <fmt/format.h>

#include "core/model/layout/encoding.h"

namespace tierd {

TensorTable::TensorTable(std::span<const TensorInfo> tensors) {
  for (const TensorInfo& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
}

Result<const TensorInfo*> TensorTable::get(const std::string& name, uint64_t rows, uint64_t cols) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return Error{Code::invalid_argument, name, "the model has no such tensor"};
  const TensorInfo& tensor = *found->second;
  if (tensor.rows != rows || tensor.cols != cols) {
    return Error{Code::invalid_argument, name,
                 fmt::format("shape {} x {}, expected {} x {}", tensor.rows, tensor.cols, rows, cols)};
  }
  if (cols % block_values(tensor.encoding) != 0) {
    return Error{Code::unsupported, name,
                 fmt::format("rows of {} columns cannot be {}, which needs a multiple of {}", cols,
                             tierd::name(tensor.encoding), block_values(tensor.encoding))};
  }
  return &tensor;
}

}  // namespace tierd
