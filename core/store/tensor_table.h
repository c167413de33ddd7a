// Looks up the tensors of a source for a plan.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

// Finds tensors by name, and checks the properties that a plan relies on. Borrows the tensors.
class TensorTable {
 public:
  explicit TensorTable(std::span<const TensorInfo> tensors);

  // Errors: no tensor has this name, or it has another shape, or its rows do not fit its encoding.
  Result<const TensorInfo*> get(const std::string& name, uint64_t rows, uint64_t cols) const;

 private:
  std::unordered_map<std::string_view, const TensorInfo*> by_name_;
};

}  // namespace tierd
