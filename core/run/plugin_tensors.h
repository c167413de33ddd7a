// The tensors that a configuration names for a plugin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/host/plugin_world.h"
#include "core/model/config.h"
#include "core/store/file.h"
#include "core/store/safetensors.h"

namespace tierd {

// A safetensors file with F32, F16 or BF16. Opened, it is measured; the tensors are read when the budget has
// room for them.
class PluginTensorFile {
 public:
  // Reads the header. Errors name the file: those of File, corrupt, unsupported for another dtype or a shape
  // that plugins cannot be shown.
  static Result<PluginTensorFile> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // What the tensors occupy in memory.
  uint64_t bytes() const { return bytes_; }

  // Whether the tensors may be about this model: most of our tools write down which one they are about.
  // Error: invalid_argument, with both.
  Status check_model(const ModelConfig& config) const;

  // Errors: those of File, no_space.
  Result<std::shared_ptr<const PluginTensors>> read() const;

 private:
  PluginTensorFile(File file, std::vector<SafetensorsTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  File file_;
  std::string made_for_;  // empty: nobody says
  std::vector<SafetensorsTensor> tensors_;
  uint64_t bytes_ = 0;
};

}  // namespace tierd
