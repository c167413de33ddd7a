// A Hugging Face folder made from another one: other weights, all else as it was.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

class ModelFolder {
 public:
  // Error: unsupported for a source that is no such folder, or holds q, k and v in one tensor.
  static Status accepts(const TensorSource& source);

  // `source` is accepted and outlives this. Makes `<out>.partial`, so that a place that cannot be written is
  // found before the work. Errors: invalid_argument where `out` is there already; io_error.
  static Result<ModelFolder> create(const TensorSource& source, const std::string& out);

  // Writes everything, `values(i)` being tensor i of the source; `provenance` becomes distillation.json. What
  // was written is on the disk when the folder gets its name. Errors: those of `values`; invalid_argument
  // where a value does not fit the encoding; no_space, io_error.
  Status write(const std::function<Result<std::vector<float>>(size_t)>& values,
               const nlohmann::ordered_json& provenance) const;

 private:
  ModelFolder(const TensorSource& source, std::string out) : source_(source), out_(std::move(out)) {}
  std::string partial() const { return out_ + ".partial"; }
  Status write_weights(const std::function<Result<std::vector<float>>(size_t)>& values) const;
  Status copy_companions() const;

  const TensorSource& source_;
  std::string out_;
};

}  // namespace tierd
