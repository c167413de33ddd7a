// The machine of a run in virtual time (run.clock = "model"): its clock, its threads, and the modelled agents
// of its description.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/agent/agent_entry.h"
#include "core/base/result.h"
#include "core/config/config.h"
#include "core/engine/model_plan.h"
#include "core/kernel/post/clocks.h"
#include "core/kernel/strategies.h"
#include "core/time/idle_agent.h"
#include "core/time/machine.h"
#include "core/time/modelled_agent.h"
#include "core/time/unit_cost.h"

namespace tierd {

class VirtualMachine {
 public:
  // Returns NULL if time is the wall clock's. `play_on`: see RuntimeOptions. Errors: those of read_machine;
  // invalid_argument naming a key that is missing, or has no meaning without the modelled clock.
  static Result<std::unique_ptr<VirtualMachine>> create(const Config& config,
                                                        const std::optional<MachineDescription>& play_on);

  // Returns whether anything is read and computed.
  bool executes() const { return executes_; }

  VirtualClock& clock() { return clock_; }
  // Returns the described disk, driven by the kernel's thread or by one of its own.
  ReadTask::Described disk(bool own_thread);
  // beside: its lanes are devices that need no thread.
  enum class Runs : uint8_t { on_the_kernels_thread, on_its_own_thread, beside };
  // An agent of a tier that computes by `plan`, or only moves neurons: on this share of the processor, or on
  // a device of its own, if the description has one for the tier.
  struct Unit {
    std::string tier;
    ComputePlan plan;
    double share = 1;
    Runs runs = Runs::on_the_kernels_thread;
    // The extents that it reads directly; empty: none.
    UnitReads reads = {};
    // [MemoryId] the tiers of the memories.
    std::vector<std::string> memories = {};
  };
  // Returns the modelled agent; `agent` executes its work, if anything is executed. `editions` outlive the
  // machine. Errors name the description: not_found, and what it lacks; invalid_argument for more agents than
  // it has devices.
  Result<Agent*> agent(Agent& agent, Unit unit, std::span<const Edition> editions);
  // Checks that no part reads activations that are neither computed nor recorded. Error: unsupported, naming
  // the reader.
  Status can_play(const ModelPlan& model, const Strategies& strategies) const;

 private:
  VirtualMachine(MachineDescription machine, bool executes)
      : machine_(std::move(machine)), executes_(executes) {}
  Result<UnitCost> cost_of(Unit& unit);
  VirtualThread& thread(bool own) { return own ? threads_.emplace_back() : threads_.front(); }

  const MachineDescription machine_;
  const bool executes_;
  VirtualClock clock_;
  std::deque<VirtualThread> threads_ = std::deque<VirtualThread>(1);  // the first is the kernel's
  VirtualThread disk_;
  std::map<std::string, uint32_t> devices_;  // devices in use, by tier
  std::deque<UnitCost> costs_;
  std::deque<IdleAgent> idle_;
  std::deque<ModelledAgent> units_;
};

}  // namespace tierd
