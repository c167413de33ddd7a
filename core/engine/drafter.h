// Guesses the next tokens cheaply; a large model then checks all guesses at once (speculative decoding:
// Leviathan et al. 2023; LLM in a flash, 5.2).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/engine/session.h"

namespace tierd {

class Drafter {
 public:
  virtual ~Drafter() = default;
  // Returns at most `most` tokens that may follow `tokens`; possibly none.
  virtual Result<std::vector<uint32_t>> draft(std::span<const uint32_t> tokens, size_t most) = 0;
};

// Guesses the tokens that followed the latest earlier occurrence of the last three tokens, else of the last
// two, else of the last one.
class PromptLookup final : public Drafter {
 public:
  Result<std::vector<uint32_t>> draft(std::span<const uint32_t> tokens, size_t most) override;
};

// Guesses the most probable tokens of a small model with the same vocabulary. `sequence`: its slot in that
// model's KV cache, for its exclusive use. The engine outlives the drafter.
class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(Engine& engine, uint32_t sequence) : engine_(engine), session_(engine, sequence) {}
  // Errors: those of Session::append.
  Result<std::vector<uint32_t>> draft(std::span<const uint32_t> tokens, size_t most) override;

 private:
  Engine& engine_;
  Session session_;
};

}  // namespace tierd
