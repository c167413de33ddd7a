// The tensors of GGUF files as tierd's: a tensor of a file is one of tierd's, or holds several.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/formats/file_source.h"
#include "core/formats/gguf_header.h"

namespace tierd {

class GgufTensors {
 public:
  // Adds to parts.tensors; parts.config is set.
  // `further`: layers after those of the configuration, which predict further tokens.
  GgufTensors(SourceParts& parts, uint32_t further);

  // Adds what a tensor of file number `file` holds. A tensor that the architecture does not have keeps its
  // own name, for the error. Errors: corrupt.
  Status add(const GgufTensor& tensor, const std::string& path, uint32_t file);

 private:
  bool is_left_out(const std::string& theirs) const;
  Status add_experts(const GgufTensor& tensor, const std::string& part, const std::string& origin,
                     uint32_t file);
  // Returns our names of the tensors that one holds, one after the other; empty: it holds one.
  std::vector<std::string> parts_of(const GgufTensor& tensor) const;
  Status add_stacked(const GgufTensor& tensor, const std::vector<std::string>& parts,
                     const std::string& origin, uint32_t file);

  SourceParts& parts_;
  const uint32_t further_;
  std::unordered_map<std::string, uint64_t> values_;  // by our name: rows of a matrix, or values of a vector
  std::unordered_map<std::string, std::string> names_;  // GGUF's name -> ours
};

}  // namespace tierd
