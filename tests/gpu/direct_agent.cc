// agent-direct.so: the directly reading part of the GPU agent, over memory that tests can inspect, unlike a
// GPU's, so that the rules of reading agents can be checked. Both paths of both devices.
#include "core/agent/agent_entry.h"
#include "core/base/align.h"
#include "tests/gpu/cuda_on_host/double.h"
#include "tiers/gpu/cuda/direct_path.h"
#include "tiers/gpu/direct_reads.h"
#include "tiers/gpu/gpu_agent.h"
#include "tiers/gpu/host_direct_path.h"

namespace tierd {
namespace {

constexpr tierd_param kParams[] = {
    {"path", TIERD_PARAM_TEXT, 0, "host", 0, 0, "host|link|cuda|cufile",
     "how what is read comes to its place"},
    {"late", TIERD_PARAM_INTEGER, 0, "0", 0, 1'000'000, nullptr,
     "cuda: seed of the lots that say when work is done"},
    {"cufile", TIERD_PARAM_TEXT, 0, "", 0, 0, nullptr, "the library that stands for libcufile.so"},
};

// A device that does not compute.
class OnlyRead final : public Device {
 public:
  explicit OnlyRead(const EmulatedLink::Rate& rate) : link(rate) {}
  std::string backend() const override { return "direct"; }
  void load(uint64_t, std::span<const std::byte>) override {}
  void begin(Engine engine, const DeviceRequest&) override { begun_[static_cast<size_t>(engine)] = true; }
  std::optional<Done> over(Engine engine) override {
    if (!std::exchange(begun_[static_cast<size_t>(engine)], false)) return std::nullopt;
    Done done;
    done.status = DoneStatus::invalid_argument;
    return done;
  }
  void linear(const PackedMatrix&, const float*, uint32_t, float*) override {}
  AgentCounts counts() const override { return {}; }
  DirectPath* direct() override { return path.get(); }

  EmulatedLink link;
  std::unique_ptr<DirectPath> path;

 private:
  bool begun_[kEngines] = {};
};

Result<MadeAgent> make(const AgentContext& context) {
  if (!context.read)
    return Error{Code::invalid_argument, "direct",
                 "the agent needs a store to read, but the run has none for it"};
  constexpr MemoryId kMemory = 1;
  const auto& path = context.get<std::string>("path");
  const std::span<std::byte> memory = context.pools.memory(kMemory);
  EmulatedLink::Rate rate;
  if (path == "link") rate = {.bytes_per_second = 50'000'000, .latency_ns = 20'000};
  auto device = std::make_unique<OnlyRead>(rate);
  if (path == "host" || path == "link") {
    TIERD_ASSIGN(device->path, HostDirectPath::create(memory, device->link, context.clock));
  } else {
    on_host::behave({.late = static_cast<uint64_t>(context.get<int64_t>("late"))});
    TIERD_ASSIGN(device->path,
                 cuda::CudaDirectPath::create({.name = "tiers.direct: a double",
                                               .cufile = context.get<std::string>("cufile"),
                                               .memory = memory,
                                               .map = [](std::span<std::byte>) { return true; }}));
  }
  AgentContext read{
      .number = context.number, .table = context.table, .pools = context.pools, .clock = context.clock};
  read.read = context.read;
  read.compute.emplace().memory = kMemory;
  constexpr uint64_t kLeastBounce = 10 * kDirectIoAlignment;
  read.read->bounce_bytes = std::max(kLeastBounce, read.read->bounce_bytes);
  return made_with(std::move(device), read);
}

}  // namespace
}  // namespace tierd

TIERD_AGENT("direct", "reads the store directly into memory that others look at",
            tierd::serves(tierd::Op::read), tierd::kParams, tierd::make)
