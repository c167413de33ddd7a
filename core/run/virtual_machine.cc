#include "core/run/virtual_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/time/described_disk.h"

namespace tierd {

Result<std::unique_ptr<VirtualMachine>> VirtualMachine::create(
    const Config& config, const std::optional<MachineDescription>& play_on) {
  if (play_on) return std::unique_ptr<VirtualMachine>(new VirtualMachine(*play_on, false));
  const bool executes = config.execute == "real";
  if (config.clock != "model") {
    if (executes) return std::unique_ptr<VirtualMachine>();
    return Error{Code::invalid_argument, "run.execute", "'trace' requires virtual time; set run.clock=model"};
  }
  if (config.machine.empty()) {
    return Error{Code::invalid_argument, "run.machine",
                 "virtual time (run.clock=model) requires a machine description; write one of this machine "
                 "with tier calibrate"};
  }
  auto machine = read_machine(config.machine);
  if (!machine.ok()) return machine.error().below("run.machine");
  return std::unique_ptr<VirtualMachine>(new VirtualMachine(std::move(*machine), executes));
}

ReadTask::Described VirtualMachine::disk(bool own_thread) {
  VirtualThread& checks = thread(own_thread);
  ReadTask::Described described;
  described.gap_bytes = machine_.disk.reads.request().gap_bytes();
  described.reads = executes_;
  described.device = [this, &checks](std::unique_ptr<BlockDevice> device,
                                     uint32_t depth) -> std::unique_ptr<BlockDevice> {
    if (!executes_) device.reset();
    return std::make_unique<DescribedDisk>(std::move(device), machine_.disk, depth, clock_, disk_, checks);
  };
  return described;
}

Result<UnitCost> VirtualMachine::cost_of(Unit& unit) {
  const std::optional<LinkDescription> link = machine_.link_to(unit.tier);
  const UnitDescription* const device = machine_.unit(unit.tier);
  if (device == nullptr) {
    auto cost = UnitCost::create(machine_.processor.share(unit.share), std::move(unit.plan), link);
    if (!cost.ok()) return Error{cost.code(), machine_.path, cost.error().detail};
    return cost;
  }
  if (++devices_[unit.tier] > device->count && device->count != 0) {
    return Error{
        Code::invalid_argument, machine_.path,
        fmt::format("'units.{0}.count' is {1}, but tiers.{0} has more agents", unit.tier, device->count)}
        .below("run.machine");
  }
  return UnitCost(*device, std::move(unit.plan), link);
}

Result<Agent*> VirtualMachine::agent(Agent& agent, Unit unit, std::span<const Edition> editions) {
  TIERD_ASSIGN(UnitCost cost, cost_of(unit));
  std::vector<std::optional<LinkDescription>> links;
  for (const std::string& from : unit.memories) links.push_back(machine_.link(from, unit.tier));
  cost.set_links(std::move(links));
  if (!unit.reads.extents.empty()) cost.set_reads(unit.reads, machine_.disk);
  Agent* carries_out = &agent;
  if (!executes_) carries_out = &idle_.emplace_back(editions, agent.credits());
  const bool beside = unit.runs == Runs::beside || machine_.unit(unit.tier) != nullptr;
  VirtualThread* const on = beside ? nullptr : &thread(unit.runs == Runs::on_its_own_thread);
  return &units_.emplace_back(*carries_out, costs_.emplace_back(std::move(cost)), clock_, on, &disk_);
}

Status VirtualMachine::can_play(const ModelPlan& model, const Strategies& strategies) const {
  if (executes_) return {};
  const bool looks = std::ranges::any_of(strategies.reads_x, [](uint8_t reads) { return reads != 0; });
  if (!looks && std::ranges::none_of(model.sites, &Site::chosen)) return {};
  return Error{Code::unsupported, "run.execute",
               looks ? "'trace' computes no activations, which the predictor reads; set run.execute=real"
                     : "'trace' computes no activations, by which the router of this model chooses experts; "
                       "set run.execute=real"};
}

}  // namespace tierd
