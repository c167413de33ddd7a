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

  // Appends tokens and returns the logits after the last of them: [vocab], valid until the next call. Several
  // tokens are a prefill, in chunks; `fed` is called after each chunk with its number of tokens. Errors:
  // no_space when the context is full, and those of begin_sequence and step; the session is then unchanged.
  Result<std::span<const float>> append(std::span<const uint32_t> tokens,
                                        const std::function<void(size_t)>& fed = {});

  // Appends tokens and calls `each(i, logits)` with the logits after token i of them, [vocab], in order.
  Status append_with_logits(std::span<const uint32_t> tokens,
                            const std::function<void(size_t, std::span<const float>)>& each);

  // Appends a token and guesses of the tokens after it, as one step of decoding. Calls `each(i, logits)` with
  // the logits after token i, in order; it returns whether guess i + 1 is right, and a wrong guess ends the
  // calls. Drops the tokens from the first wrong guess on. Returns how many tokens stay. At most as many
  // tokens as the engine has rows with logits.
  Result<size_t> append_guesses(std::span<const uint32_t> tokens,
                                const std::function<bool(size_t, std::span<const float>)>& each);

  // Drops all tokens but the first `tokens`.
  void truncate(size_t tokens);

  uint32_t position() const { return static_cast<uint32_t>(tokens_.size()); }
  std::span<const uint32_t> tokens() const { return tokens_; }
  // Drops all tokens.
  void clear() {
    end();
    tokens_.clear();
  }

 private:
  // For predictors a session is a sequence from its first token to its end, or to the next `clear`.
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
