// Admission decides which missing neurons a memory keeps and which of its neurons it evicts: asks the
// memory's cache, checks the answers, leases slots, and tells the cache what became of its neurons.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/agent/message.h"
#include "core/base/result.h"
#include "core/kernel/active_set.h"
#include "core/kernel/plugin_answer.h"
#include "core/kernel/strategies.h"
#include "core/kernel/supply/context.h"
#include "core/kernel/supply/fetch_list.h"

namespace tierd {

class Admission {
 public:
  // The dispatcher's observer hears of evictions. Everything referred to outlives the admission.
  Admission(const SupplyContext& context, Strategies& strategies)
      : context_(context), strategies_(strategies) {}

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

  // Neurons with leased slots have landed, or could not be fetched.
  void landed(EditionId edition, std::span<const uint32_t> neurons);
  void failed(EditionId edition, std::span<const uint32_t> neurons);

  // Tells the cache that another memory has fetched these neurons from here, as it is told which neurons a
  // pass has computed. A fault is kept.
  void passed_on(EditionId edition, const ActiveSet& neurons);
  // After a pass that used the edition: evicts the neurons that the cache does not want to keep any longer.
  // Error: plugin_fault.
  Status expire(EditionId edition);
  // Between two steps, with nothing in flight: evicts valid neurons because the arena shrinks.
  void shrink(EditionId edition, std::span<const uint32_t> neurons);

  // Keeps a fault of the cache in a call whose answer nothing depended on. `take_fault` returns it once.
  void keep_fault(const Status& answer);
  Status take_fault();

 private:
  Status evict(EditionId edition, std::span<const tierd_neuron> victims, const char* function);
  void tell_left(EditionId edition, std::span<const uint32_t> neurons, int why);
  void tell_dropped(EditionId edition, std::span<const uint32_t> neurons, int why);
  Strategy<tierd_cache_1>& cache() const { return strategies_.caches[context_.id - 1u]; }

  const SupplyContext& context_;
  Strategies& strategies_;
  Status fault_;  // kept and not returned yet

  // Each of these is filled in one function; they are members so that their memory is reused.
  std::vector<uint8_t> answers_;
  std::vector<tierd_neuron> victims_;
  std::vector<tierd_neuron> expired_;  // has room for all neurons of an edition
  std::vector<uint32_t> evicted_;
};

}  // namespace tierd
