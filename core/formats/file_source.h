// The TensorSource that every reader returns: tensors at known offsets of open files.
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
  std::vector<File> files;              // the files with weights; TensorInfo::file is an index into them
  std::vector<std::string> companions;  // other files that were read: configuration, tokenizer
  std::vector<TensorInfo> tensors;      // under tierd's names, in any order, each of a known file
  std::optional<Vocab> vocab;
};

// Makes the source, after the checks that all readers share: the tensors are exactly the required ones, have
// their shapes, and are inside their files. Errors: corrupt; unsupported for a tensor that the architecture
// does not use, unless it is empty.
Result<std::unique_ptr<TensorSource>> make_file_source(SourceParts parts);

}  // namespace tierd
