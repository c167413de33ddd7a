// The arena of one memory knows which of the memory's addresses are in use. Its size changes between two
// steps, with nothing in flight: then no slot is leased or pinned, and no slot has to be waited for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/admission.h"
#include "core/kernel/supply/context.h"

namespace tierd {

class Arena : private CompletionSink {
 public:
  // Everything referred to outlives the arena.
  Arena(const SupplyContext& context, Admission& admission)
      : context_(context), admission_(admission), memory_(context.memory()) {}
  ~Arena() override;

  // Returns whether the size can change at all. Error: unsupported, naming the cache or the agent.
  Status resizable(const Strategy<tierd_cache_1>& cache) const;
  // Returns the bytes that the cache splits among the editions.
  uint64_t bytes() const { return memory_.arena_bytes; }
  // Asks the cache how it would split `bytes`. `at_home` [editions]: how many neurons of each have their home
  // here. Error: plugin_fault; then nothing has changed.
  Result<ResizedCache> ask(Strategy<tierd_cache_1>& cache, uint64_t bytes,
                           std::vector<uint32_t> at_home) const;
  // Carries out the answer to `ask` with these `bytes`: evicts the victims, moves neurons behind an edition's
  // new end, and tells the agent which addresses are in use from now on. Error: internal, when the agent
  // cannot do it; neurons that it failed to move are evicted, and everything else is as it should be.
  Task<Status> resize(uint64_t bytes, ResizedCache answer);

  // Tells the agent which addresses are in use, unless it was told. Agents that do not serve `resize` are not
  // told.
  Task<Status> tell();

 private:
  void on_done(const Message& message, const Done& done) override;
  Message message(Op op) const;
  std::vector<Unit> in_use() const;
  uint32_t place(EditionId edition, uint32_t slot) const;

  const SupplyContext& context_;
  Admission& admission_;
  Memory memory_;
  bool told_ = false;
  uint32_t open_ = 0;               // messages under way
  std::vector<EditionId> unmoved_;  // editions whose neurons could not be moved
  Status status_;
};

}  // namespace tierd
