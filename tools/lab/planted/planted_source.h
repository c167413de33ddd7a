// A model of an OPT-like shape whose real forward pass has planted activation statistics. As with
// SyntheticSource, any range of bytes is made when it is read, and depends on the seed alone. Only the biases
// of the layers read so far, and the features of the last layer read, are kept.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/result.h"
#include "core/model/tensor_source.h"
#include "tools/lab/planted/counter_random.h"
#include "tools/lab/planted/embedding.h"
#include "tools/lab/planted/ffn.h"
#include "tools/lab/planted/profile.h"

namespace tierd {

class PlantedSource : public TensorSource {
 public:
  // Matrices are in `encoding`, f32 or f16, vectors and learned positions in f32. The configuration is
  // `shape` with a separate head, whose next token is the next id, and attention without biases. Errors:
  // unsupported (a shape other than pre-norm OPT's with ReLU, another encoding), invalid_argument (a
  // vocabulary or a number of layers too small).
  static Result<std::unique_ptr<PlantedSource>> make(ModelConfig shape, PlantedProfile profile,
                                                     Encoding encoding, uint64_t seed);

  const ModelConfig& config() const override { return config_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const Vocab* vocab() const override { return &vocab_; }
  std::string fingerprint() const override { return fingerprint_; }
  // "planted: flash, seed 1": the source in the store's manifest.
  std::string path() const override { return path_; }
  Status read(const TensorInfo& tensor, uint64_t offset, std::span<std::byte> out) const override;

  const PlantedFfn& ffn(uint32_t layer) const { return *ffns_[layer]; }
  std::shared_ptr<const PackedMatrix> features(uint32_t layer) const;
  uint64_t seed() const { return seed_; }

 private:
  // The values of a tensor. The first three kinds are made by any piece of a row, the others by whole rows.
  enum class Kind : uint8_t { constant, uniform, down, up, up_bias, down_bias, embed, head };
  struct Content {
    Kind kind = Kind::constant;
    uint32_t layer = 0;
    double value = 0;  // of kind constant: the value; of kind uniform: the deviation
    Drawn drawn = Drawn::q;
  };

  PlantedSource() = default;
  Content content_of(const TensorInfo& tensor) const;
  void make_piece(const Content& content, uint64_t row, uint64_t first, std::span<float> out) const;
  void make_rows(const Content& content, PlantedEmbedding& embedding, uint32_t first, uint32_t count,
                 std::span<float> out) const;

  ModelConfig config_;
  PlantedProfile profile_;
  uint64_t seed_ = 0;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, Content> contents_;  // by the names in tensors_
  std::vector<std::unique_ptr<PlantedFfn>> ffns_;           // one for each layer
  Vocab vocab_;
  std::string fingerprint_;
  std::string path_;

  mutable std::mutex features_lock_;
  mutable uint32_t features_layer_ = UINT32_MAX;
  mutable std::shared_ptr<const PackedMatrix> features_;
};

}  // namespace tierd
