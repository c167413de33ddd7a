// agent-flash.so
#include "core/base/units.h"
#include "core/kernel/agent_entry.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {
namespace {

constexpr tierd_param kParams[] = {
    {"device", TIERD_PARAM_TEXT, 0, "auto", 0, 0, "auto|io_uring|pread", "how the store is read"},
    {"depth", TIERD_PARAM_INTEGER, 0, "32", 1, 4096, nullptr, "most reads in flight"},
    {"max_read", TIERD_PARAM_TEXT, 0, "1 MiB", 0, 0, nullptr,
     "adjacent extents are read together up to this"},
    {"verify", TIERD_PARAM_FLAG, 0, "true", 0, 0, nullptr,
     "check every extent's checksum whenever it is read"},
    {"direct", TIERD_PARAM_FLAG, 0, "true", 0, 0, nullptr, "O_DIRECT, past the page cache"},
};

DeviceKind kind_of(const std::string& name) {
  if (name == "io_uring") return DeviceKind::io_uring;
  return name == "pread" ? DeviceKind::pread : DeviceKind::automatic;
}

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.read) return Error{Code::invalid_argument, "flash", "there is nothing to read"};
  const ReadTask& task = *context.read;
  FlashOptions options;
  TIERD_ASSIGN(options.max_read_bytes,
               parse_bytes(context.get<std::string>("max_read"), context.table + ".max_read"));
  options.verify = context.get<bool>("verify");
  const DeviceOptions device = {.kind = kind_of(context.get<std::string>("device")),
                                .depth = static_cast<uint32_t>(context.get<int64_t>("depth")),
                                .direct = context.get<bool>("direct")};
  TIERD_ASSIGN(std::unique_ptr<BlockDevice> opened,
               task.open_device ? task.open_device(task.path, device) : open_device(task.path, device));
  opened->register_memory(task.landing);
  MadeAgent made;
  made.backend = opened->name();
  auto agent =
      std::make_unique<FlashAgent>(context.number, context.pools, std::move(opened), task.extents, options);
  made.counts = [agent = agent.get()] { return agent->counts(); };
  made.agent = std::move(agent);
  return made;
}

}  // namespace
}  // namespace tierd

TIERD_AGENT("flash", "extents of a store's file, past the page cache", tierd::serves(tierd::Op::read),
            tierd::kParams, tierd::make)
