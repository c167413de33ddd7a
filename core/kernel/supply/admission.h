// What may come into a memory, and what leaves it: asks the memory's cache, leases
// slots for what it keeps, evicts what it names, and tells it what became of its neurons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/counters.h"
#include "core/kernel/memory.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/post/dispatcher.h"
#include "core/kernel/residency.h"
#include "core/kernel/site.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/fetch_list.h"
#include "core/message/message.h"

namespace tierd {

class Admission {
 public:
  // `memory`: whose cache is asked. The dispatcher's observer hears of evictions. Everything referred
  // to outlives the admission.
  Admission(std::span<const Edition> editions, Strategies& strategies, MemoryId memory, Residency& residency,
            MemoryCounters& counters, const Dispatcher& dispatcher);

  // Asks the cache about neurons of the list's edition that are neither valid nor being fetched; evicts its
  // victims, leases slots for the neurons that it keeps, and appends to the list what it does not refuse. A
  // list that bypasses caches: the cache is not asked, and no neuron is kept. Error: plugin_fault; the list
  // is dropped then.
  Status admit(std::span<const uint32_t> missing, FetchList& list);
  // The same for neurons that the cache has named itself, before the first step or between two, as far as
  // there is room.
  Status admit_wanted(WantedNeurons wanted, FetchList& list);
  // Gives back the slots of neurons that no transfer has taken from the list.
  void drop(FetchList& list);

  // What had leased slots is there, or could not be read.
  void landed(EditionId edition, std::span<const uint32_t> neurons);
  void failed(EditionId edition, std::span<const uint32_t> neurons);

  // Another memory has fetched these neurons from here: the cache is told as it is told what a pass computed.
  // A fault is kept.
  void passed_on(EditionId edition, const ActiveSet& neurons);
  // After a pass that used the edition: evicts what its cache does not want to keep any longer. Error:
  // plugin_fault.
  Status expire(EditionId edition);
  // Between two steps, with nothing in flight: evicts valid neurons because their room goes.
  void shrink(EditionId edition, std::span<const uint32_t> neurons);

  // A fault of the cache in an answer to mere news, or where nothing depended on the answer, is kept until
  // somebody can be told; it is told once.
  void keep_fault(const Status& answer);
  Status take_fault();

 private:
  Status evict(EditionId edition, std::span<const tierd_neuron> victims, const char* function);
  void tell_left(EditionId edition, std::span<const uint32_t> neurons, int why);
  void tell_dropped(EditionId edition, std::span<const uint32_t> neurons, int why);
  Strategy<tierd_cache_1>& cache() const { return strategies_.caches[memory_ - 1u]; }

  const std::span<const Edition> editions_;
  Strategies& strategies_;
  const MemoryId memory_;
  Residency& residency_;
  MemoryCounters& counters_;
  const Dispatcher& dispatcher_;
  Status fault_;  // not yet told

  // Each of these is filled in one function; they are members so that their memory is reused.
  std::vector<uint8_t> answers_;
  std::vector<tierd_neuron> victims_;
  std::vector<tierd_neuron> expired_;  // room for all of an edition
  std::vector<uint32_t> evicted_;
};

}  // namespace tierd
