// The arena of one memory: which of its addresses are in use. It gets another size between two steps,
// with nothing in flight: then no slot is leased or pinned, and none has to wait for its end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/memory.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/post/task.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/supply.h"

namespace tierd {

class Arena : private CompletionSink {
 public:
  // `supply` fetches what the arena holds; who waits at `changed` is woken by each message that ended.
  // Everything referred to outlives the arena.
  Arena(Dispatcher& dispatcher, const SiteTable& sites, Residency& residency, Supply& supply, MemoryId id,
        Memory memory, Notice& changed);
  ~Arena() override;

  // Whether it can have another size at all. Error: unsupported, naming the cache or the agent.
  Status resizable(const Strategy<tierd_cache_1>& cache) const;
  // What its cache may split.
  uint64_t bytes() const { return memory_.arena_bytes; }
  // What the cache makes of `bytes`, where `at_home` [editions] neurons of each have their home here. Error:
  // plugin_fault; then nothing has changed.
  Result<ResizedCache> ask(Strategy<tierd_cache_1>& cache, uint64_t bytes,
                           std::vector<uint32_t> at_home) const;
  // Carries it out, `bytes` being what was asked about: lets go what leaves, moves what lies behind an
  // edition's new end, tells the agent what is in use from now on. Error: internal, when the agent cannot do
  // it; what it failed to move is gone, and everything else is as it should be.
  Task<Status> resize(uint64_t bytes, ResizedCache answer);

  // Tells the agent what is in use, unless it was told; for one that serves `resize`.
  Task<Status> tell();

 private:
  void on_done(const Message& message, const Done& done) override;
  Message message(Op op) const;
  std::vector<Unit> in_use() const;
  uint32_t place(EditionId edition, uint32_t slot) const;

  Dispatcher& dispatcher_;
  const SiteTable& sites_;
  Residency& residency_;
  Supply& supply_;
  MemoryId id_;
  Memory memory_;
  Notice& changed_;
  bool told_ = false;
  uint32_t open_ = 0;               // messages under way
  std::vector<EditionId> unmoved_;  // of which slots could not be moved
  Status status_;
};

}  // namespace tierd
