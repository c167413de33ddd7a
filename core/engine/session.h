// One sequence of tokens and its place in the KV cache.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/engine/engine.h"

namespace tierd {

class Session {
 public:
  // `sequence`: its slot in the KV cache, used by no other session. The engine outlives the session.
  Session(Engine& engine, uint32_t sequence) : engine_(engine), sequence_(sequence) {}
  ~Session() { end(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Appends tokens and returns the logits after the last of them: [vocab], valid until the next call. More
  // than one token goes as prefill, in chunks. Errors: no_space when the context is full, and those of
  // Engine::begin_sequence and Engine::step; the session then stays where it was. `fed` is told after each
  // chunk how many tokens it had.
  Result<std::span<const float>> append(std::span<const uint32_t> tokens,
                                        const std::function<void(size_t)>& fed = {});

  // Appends tokens and tells `each(i, logits)` the logits after token i of them, [vocab], in their order.
  Status append_with_logits(std::span<const uint32_t> tokens,
                            const std::function<void(size_t, std::span<const float>)>& each);

  // Appends a token and guesses of those that follow it, as one step of decoding. `each(i, logits)` is told
  // the logits after token i, in their order, and says whether guess i + 1 is right; what follows a wrong one
  // is forgotten. Returns how many tokens stay. At most as many as the engine has rows with logits.
  Result<size_t> append_guesses(std::span<const uint32_t> tokens,
                                const std::function<bool(size_t, std::span<const float>)>& each);

  // Forgets all tokens but the first `tokens`.
  void truncate(size_t tokens);

  // Appends tokens and adds up -ln p(token | those before it) for each of them but the first of the session.
  struct Loss {
    double nats = 0;
    uint64_t tokens = 0;
  };
  Result<Loss> append_with_loss(std::span<const uint32_t> tokens);

  uint32_t position() const { return static_cast<uint32_t>(tokens_.size()); }
  std::span<const uint32_t> tokens() const { return tokens_; }
  // Forgets everything.
  void clear() {
    end();
    tokens_.clear();
  }

 private:
  // To predictors a session is a sequence from its first token to its end, or to the next `clear`.
  Status begin();
  void end();
  Status check_room(size_t tokens) const;
  Result<std::span<const float>> step(std::span<const uint32_t> tokens, std::span<const uint32_t> wanted,
                                      bool prefill);

  Engine& engine_;
  uint32_t sequence_;
  bool begun_ = false;
  std::vector<uint32_t> tokens_;
};

}  // namespace tierd
