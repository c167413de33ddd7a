// A model that learns to say with masked inputs what it says without (ActiveFlow, section 5). What computes
// is the trainer's shared object, see trainer_library.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/config.h"

namespace tierd {

struct NamedTensor {
  std::string name;   // ours, see required_tensors
  uint64_t rows = 0;  // 1 for a vector
  uint64_t cols = 0;
  std::vector<float> values;
};

struct Network {
  ModelConfig config;
  std::vector<float> frequencies;  // rope_frequencies; empty for learned positions
  std::vector<NamedTensor> tensors;
};

// How the student sees the matrices of its layers: rounded to Q4_0, blocks of 32 along a row as GGUF has
// them, or along a column as stores of layout channel-group do.
enum class FakeQuant : uint8_t { none, q4_0_rows, q4_0_columns };

struct DistillerOptions {
  double sparsity = 0.5;  // share of the inputs of every operator of the layers that the student does without
  FakeQuant fake_quant = FakeQuant::none;
  // The ablations of ActiveFlow's Table 5. Without straight-through gradients, an input that is masked has
  // none; those of rounding always pass, or nothing would learn. Without a teacher, the student learns the
  // text itself.
  bool straight_through = true;
  bool teacher = true;
  double weight_decay = 0;
  double clip = 1;       // of the gradient's norm; 0: none
  uint32_t threads = 0;  // 0: one a core
  bool cuda = false;
};

// The teacher is the model as it came, dense. The student has the same weights at first; what it computes an
// operator of a layer from is masked as predictor top-k does it, for each token by itself. Gradients pass
// masks and rounding as if there were none, unless the options say otherwise. Not thread-safe.
class Distiller {
 public:
  virtual ~Distiller() = default;

  // One step of AdamW on KL(teacher || student) over these windows of tokens; without a teacher, on the
  // student's cross-entropy with the tokens that follow. Returns what that was before it, in nats a token.
  // Errors: invalid_argument where it leaves the finite numbers; internal, from libtorch.
  virtual Result<double> step(std::span<const std::vector<uint32_t>> windows, double learning_rate) = 0;

  // After each token of a window: [tokens x vocab].
  virtual Result<std::vector<float>> teacher_logits(std::span<const uint32_t> window) = 0;
  // At any sparsity; weights rounded as in training.
  virtual Result<std::vector<float>> student_logits(std::span<const uint32_t> window, double sparsity) = 0;

  // The student's, in the order of the network's tensors and never rounded.
  virtual Result<std::vector<float>> weights(size_t tensor) = 0;
};

// Keeps what it needs of the network. Errors: unsupported without libtorch, or without the device that is
// asked for; invalid_argument for widths that blocks of 32 do not divide.
Result<std::unique_ptr<Distiller>> make_distiller(const Network& network, const DistillerOptions& options);

}  // namespace tierd
