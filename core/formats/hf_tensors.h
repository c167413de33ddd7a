// The tensors of a Hugging Face folder as tierd's: a tensor of a file is one of tierd's, or holds several.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/result.h"
#include "core/formats/file_source.h"
#include "core/formats/safetensors.h"

namespace tierd {

class HfTensors {
 public:
  // Adds to parts.tensors; parts.config is set.
  explicit HfTensors(SourceParts& parts) : parts_(parts) {}

  // Adds what a tensor of a file holds; the file is the next one of parts.files. Errors: corrupt;
  // unsupported.
  Status add(const SafetensorsTensor& tensor, const File& file);
  // Adds what only two tensors together hold, after all files.
  Status finish();

 private:
  struct Half {
    SafetensorsTensor tensor;
    std::string origin;
    uint32_t file = 0;
  };

  // Returns whether tierd does without the tensor: tables that follow from the configuration, the parts of a
  // model that read images, and layers that predict further tokens.
  bool is_left_out(const std::string& theirs) const;
  Result<TensorInfo> as_tensor(const SafetensorsTensor& tensor, const std::string& origin) const;
  Status add_grouped_qkv(const TensorInfo& fused, const std::string& origin);
  Status add_stacked(const TensorInfo& fused, const std::string& origin);
  Status add_experts(const SafetensorsTensor& tensor, const std::string& ours, const std::string& origin);
  Status add_expert_biases(const TensorInfo& fused, const std::string& origin);
  Status add_mxfp4(const std::string& ours, const Half& codes, const Half& scales);
  void add_expert(const std::string& layer, uint32_t expert, const char* op, TensorInfo info);

  SourceParts& parts_;
  std::map<std::string, Half> codes_;   // by our name, which ends in ".blocks"
  std::map<std::string, Half> scales_;  // likewise
};

}  // namespace tierd
