// The TensorSource that every reader ends in: tensors at known offsets of open files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/model/tensor_source.h"

namespace tierd {

struct SourceParts {
  std::string path;                     // as given by the user
  ModelConfig config;                   // validated
  std::vector<File> files;              // that hold weights; TensorInfo::file counts in them
  std::vector<std::string> companions;  // other files that were read: configuration, tokenizer
  std::vector<TensorInfo> tensors;      // by our names, in any order, each of a known file
  std::optional<Vocab> vocab;
};

// Checks what no reader should have to: that the tensors are those required and no others, their shapes, and
// that they lie inside their files. Errors: corrupt; unsupported for a tensor that the
// architecture does not use, unless it is empty.
Result<std::unique_ptr<TensorSource>> make_file_source(SourceParts parts);

}  // namespace tierd
