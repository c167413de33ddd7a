// agent-flash.so
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/agent/agent_entry.h"
#include "core/base/units.h"
#include "tiers/compute/kernels.h"
#include "tiers/flash/bounce_gain.h"
#include "tiers/flash/break_even.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {
namespace {

// Ten times the bytes that a disk of 4 GB/s reads in the 50 µs that a read takes.
constexpr uint64_t kInFlightBytes = uint64_t{2} << 20;

constexpr tierd_param kParams[] = {
    {"device", TIERD_PARAM_TEXT, 0, "auto", 0, 0, "auto|io_uring|pread", "way of reading the store"},
    {"depth", TIERD_PARAM_INTEGER, 0, "128", 1, 4096, nullptr, "maximum number of reads in flight"},
    {"in_flight", TIERD_PARAM_TEXT, 0, "auto", 0, 0, nullptr,
     "bytes in flight from which no further read starts, because the device serves reads in parallel, which "
     "delays a demand; auto: 2 MiB with a thread of its own, else no limit except depth"},
    {"max_read", TIERD_PARAM_TEXT, 0, "1 MiB", 0, 0, nullptr, "maximum size of one read of several extents"},
    {"gap", TIERD_PARAM_TEXT, 0, "auto", 0, 0, nullptr,
     "maximum gap between two extents that one read covers instead of two reads: a size, or auto, measured"},
    {"landing", TIERD_PARAM_TEXT, 0, "auto", 0, 0, "auto|direct|bounce",
     "where small reads land that could land at their destination: direct, there; bounce, in the bounce "
     "buffer, from which they are copied; auto: the faster one, measured"},
    {"verify", TIERD_PARAM_FLAG, 0, "true", 0, 0, nullptr, "check the checksum of every extent that is read"},
    {"direct", TIERD_PARAM_FLAG, 0, "true", 0, 0, nullptr, "read with O_DIRECT, without the page cache"},
};

DeviceKind kind_of(const std::string& name) {
  if (name == "io_uring") return DeviceKind::io_uring;
  return name == "pread" ? DeviceKind::pread : DeviceKind::automatic;
}

// An agent that is driven between the kernel's other work cannot give the device its next reads in time.
Result<uint64_t> in_flight_of(const AgentContext& context) {
  const auto& text = context.get<std::string>("in_flight");
  if (text == "auto") return context.own_thread ? kInFlightBytes : UINT64_MAX;
  return parse_bytes(text, context.table + ".in_flight");
}

// Returns why the file is not measured, or NULL if it can be: a device that a test opens in place of the file
// is not measured, and without a bounce buffer no gap can be thrown away and nothing is copied.
const char* why_unmeasured(const ReadTask& task) {
  if (task.bounce_bytes == 0) return "no extent is small";
  if (task.described) return "described";
  return task.open_device ? "not measured" : nullptr;
}

Status choose_gap(const AgentContext& context, const DeviceOptions& device, uint64_t most,
                  ReadChoices& chosen) {
  const ReadTask& task = *context.read;
  const auto& text = context.get<std::string>("gap");
  if (text != "auto") {
    chosen.gap_from = "set";
    TIERD_ASSIGN(chosen.gap_bytes, parse_bytes(text, context.table + ".gap"));
    return {};
  }
  if (const char* why = why_unmeasured(task)) {
    chosen.gap_from = why;
    if (task.described && task.bounce_bytes != 0)
      chosen.gap_bytes = std::min(task.described->gap_bytes, most);
    return {};
  }
  const auto measured = measure_break_even(task.path, device);
  chosen.gap_from = measured.ok() ? measured->how : fmt::format("not measured: {}", measured.error().detail);
  if (!measured.ok()) return {};
  chosen.gap_bytes = std::min(measured->bytes, most);
  spdlog::debug("{}: gaps up to {} are read through, {}", task.path,
                format_bytes(static_cast<double>(chosen.gap_bytes)), chosen.gap_from);
  return {};
}

void choose_landing(const AgentContext& context, const DeviceOptions& device, ReadChoices& chosen) {
  const ReadTask& task = *context.read;
  const auto& text = context.get<std::string>("landing");
  if (text != "auto") {
    chosen.bounced = text == "bounce" && task.bounce_bytes != 0;
    chosen.bounced_from = task.bounce_bytes != 0 ? "set" : "no extent is small";
    return;
  }
  if (const char* why = why_unmeasured(task)) {
    chosen.bounced_from = why;
    return;
  }
  const auto measured = measure_bounce_gain(task.path, device, task.memory_bytes);
  chosen.bounced_from =
      measured.ok() ? measured->how : fmt::format("not measured: {}", measured.error().detail);
  chosen.bounced = measured.ok() && measured->worth_it();
}

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.read)
    return Error{Code::invalid_argument, "flash",
                 "the agent needs a store to read, but the run has none for it"};
  const ReadTask& task = *context.read;
  FlashOptions options;
  TIERD_ASSIGN(options.max_read_bytes,
               parse_bytes(context.get<std::string>("max_read"), context.table + ".max_read"));
  TIERD_ASSIGN(options.in_flight_bytes, in_flight_of(context));
  options.brings = !task.described || task.described->reads;
  options.verify = context.get<bool>("verify") && options.brings;
  options.pieces = task.pieces;
  TIERD_ASSIGN(const ComputeKernels* const kernels, choose_kernels(task.kernels));
  options.expansion = Expansion(task.compressed, kernels->expand_bitmap);
  const DeviceOptions device = {.kind = kind_of(context.get<std::string>("device")),
                                .depth = static_cast<uint32_t>(context.get<int64_t>("depth")),
                                .direct = context.get<bool>("direct")};
  std::unique_ptr<BlockDevice> opened;
  if (options.brings) {
    TIERD_ASSIGN(opened,
                 task.open_device ? task.open_device(task.path, device) : open_device(task.path, device));
  }
  if (task.described) opened = task.described->device(std::move(opened), device.depth);
  ReadChoices chosen;
  TIERD_TRY(choose_gap(context, device, options.max_read_bytes, chosen));
  choose_landing(context, device, chosen);
  options.gap_bytes = chosen.gap_bytes;
  options.prefer_bounce = chosen.bounced;
  TIERD_ASSIGN(BounceBuffer bounce, BounceBuffer::create(task.bounce_bytes));
  opened->register_memory(bounce.bytes() != 0 ? bounce.memory() : task.landing);
  MadeAgent made;
  made.backend = opened->name();
  made.reading = std::move(chosen);
  auto agent = std::make_unique<FlashAgent>(context.number, context.pools, context.clock, std::move(opened),
                                            task.extents, options, std::move(bounce));
  made.counts = [agent = agent.get()] { return agent->counts(); };
  made.agent = std::move(agent);
  return made;
}

}  // namespace
}  // namespace tierd

TIERD_AGENT("flash", "reads extents of a store's file without the page cache",
            tierd::serves(tierd::Op::read) | tierd::kRecodes, tierd::kParams, tierd::make)
