// Guesses of the tokens to come, cheap ones, which a large model then checks all at once (speculative
// decoding: Leviathan et al. 2023; LLM in a flash, 5.2).
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
  // At most `most` tokens that may follow `tokens`; none where nothing comes to mind.
  virtual Result<std::vector<uint32_t>> draft(std::span<const uint32_t> tokens, size_t most) = 0;
};

// What followed when the same words were said before: the latest earlier place where the last three tokens
// stand, else the last two, else the last one.
class PromptLookup final : public Drafter {
 public:
  Result<std::vector<uint32_t>> draft(std::span<const uint32_t> tokens, size_t most) override;
};

// What a small model of the same vocabulary says, its most probable tokens. `sequence`: its slot in that
// model's KV cache, used by nobody else. The engine outlives the drafter.
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
