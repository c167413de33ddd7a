// The tensors that a configuration names for a plugin: of a file, or of the model itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/formats/safetensors.h"
#include "core/model/config.h"
#include "core/model/tensor_source.h"
#include "core/store/store.h"
#include "core/strategy/plugin_world.h"

namespace tierd {

// A source is measured at once, and read when the budget has room for it.
class PluginTensorSource {
 public:
  virtual ~PluginTensorSource() = default;
  // Returns the name for errors and for the budget.
  virtual const std::string& path() const = 0;
  // Returns the memory that the tensors will occupy.
  virtual uint64_t bytes() const = 0;
  // Checks that the tensors may belong to this model. Error: invalid_argument, naming both models.
  virtual Status check_model(const ModelConfig& config) const = 0;
  // Errors: those of the files, no_space.
  virtual Result<std::shared_ptr<const PluginTensors>> read() const = 0;
};

// A safetensors file with F32, F16 or BF16.
class PluginTensorFile final : public PluginTensorSource {
 public:
  // Reads the header. Errors name the file: those of File, corrupt, unsupported for another dtype or a shape
  // that tierd_tensor_view cannot express.
  static Result<PluginTensorFile> open(const std::string& path);

  const std::string& path() const override { return file_.path(); }
  uint64_t bytes() const override { return bytes_; }
  // Compares the shape of the model that most of our tools write into the file.
  Status check_model(const ModelConfig& config) const override;
  Result<std::shared_ptr<const PluginTensors>> read() const override;

 private:
  PluginTensorFile(File file, std::vector<SafetensorsTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  File file_;
  std::string made_for_;  // empty: the file does not name a model
  std::vector<SafetensorsTensor> tensors_;
  uint64_t bytes_ = 0;
};

// `tensors = "model"` names tensors of the model itself, planned or stored: the routers of a mixture, as
// layers.N.experts.router [experts x d_model]. Other models have none.
class ModelTensors final : public PluginTensorSource {
 public:
  static constexpr std::string_view kName = "model";
  // Both outlive this; `source` NULL: the store exists, and tensors are read from it.
  ModelTensors(const Store& store, const TensorSource* source) : store_(&store), source_(source) {}

  const std::string& path() const override { return store_->directory(); }
  uint64_t bytes() const override;
  Status check_model(const ModelConfig&) const override { return {}; }
  Result<std::shared_ptr<const PluginTensors>> read() const override;

 private:
  Result<std::vector<float>> router(const std::string& name) const;

  const Store* store_;
  const TensorSource* source_;
};

}  // namespace tierd
