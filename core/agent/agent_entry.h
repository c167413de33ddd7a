// The export of an agent from its shared object, agent-NAME.so, and the context of its construction:
//
//   Result<MadeAgent> make(const AgentContext& context) { … }
//   TIERD_AGENT("mine", "summary in one line", serves(Op::read), kParams, make)      // outside any namespace
//
// Unlike the interface of strategies (core/include/tierd) this is C++: an agent must be built against the
// headers of the tierd that loads it, by the same compiler with the same flags. The build id verifies this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/agent/agent.h"
#include "core/agent/build_id.h"
#include "core/agent/clock.h"
#include "core/agent/compressed_extents.h"
#include "core/agent/counts.h"
#include "core/agent/extent_table.h"
#include "core/agent/pool.h"
#include "core/agent/program.h"
#include "core/base/block_device.h"
#include "core/base/check.h"
#include "core/base/result.h"
#include "core/base/setting.h"
#include "core/model/layout/encoding.h"
#include "tierd/params.h"

namespace tierd {

// The task of an agent that reads: a store's file. Everything in it outlives the agent.
struct ReadTask {
  std::string path;
  ExtentTable extents;
  std::span<const ExtentPieces> pieces = {};  // of all neurons with more than one extent
  // Neurons that reads with kRecode expand, in the order of the extents; and the instruction set for it.
  std::span<const CompressedExtents> compressed = {};
  std::string kernels = "auto";
  std::span<std::byte> landing;  // destination of most reads, worth pinning
  uint64_t memory_bytes = 0;     // all memory that reads land in
  // Memory for reads that cannot land at their destination, a multiple of 4096: at least twice the blocks of
  // the largest unaligned or expanded extent (of the largest one for direct reads); 0 if there is none.
  uint64_t bounce_bytes = 0;
  OpenDevice open_device = {};  // opens the file in tests; empty: the agent opens it
  // In virtual time: `device` wraps the file's device in a described one, `depth` reads deep; gap_bytes is
  // the longest gap to read through. Nothing is measured then.
  struct Described {
    std::function<std::unique_ptr<BlockDevice>(std::unique_ptr<BlockDevice> device, uint32_t depth)> device;
    uint64_t gap_bytes = 0;
    bool reads = true;  // false: nothing is read, and so nothing can be verified
  };
  std::optional<Described> described = {};
};

// The task of an agent that computes: a model, and the memory of its weights. The agent registers two pools
// in the table. One is its memory: arena, staging and resident tensors, contiguous; arena and staging begin
// at multiples of 4096. Most of the arena's addresses may never be used: an agent that serves `resize` gets
// the ranges in use before the first read. The other is its activations: the buffers of the plan, at
// buffer_offsets(). Once messages come, the agent uses the values of the resident tensors in place. An agent
// whose memory is apart registers only its activations, and receives the tensors by MadeAgent::load.
struct ComputeTask {
  MemoryId memory = 1;  // its number
  ComputePlan plan;
  uint64_t arena_bytes = 0;
  uint64_t staging_bytes = 0;
  uint64_t tensor_bytes = 0;
  std::vector<uint64_t> tensors = {};  // [TensorId] offset in the memory, bytes
  std::string kernels = "auto";        // instruction set
  uint32_t threads = 1;                // threads that compute, the agent's driving thread included
  std::vector<uint32_t> cores = {};    // [threads] that they are bound to; empty: not bound
  bool described = false;              // virtual time: the agent need not measure the duration of messages
};

// The argument of `make`, valid during that call; for its references see each field.
struct AgentContext {
  uint16_t number = 0;  // the agent's, in the table of pools and in messages
  std::string table;    // its table in the configuration, "tiers.flash", for errors about a parameter
  PoolTable& pools;     // outlives the agent; `make` adds the agent's own
  const Clock& clock;   // for the times in completions; outlives the agent
  // The agent is driven by a thread of its own, not between other work of the kernel's.
  bool own_thread = false;
  std::span<const Setting> settings = {};   // every declared parameter, checked
  std::optional<ReadTask> read = {};        // for agents that serve `read` or read directly
  std::optional<ComputeTask> compute = {};  // for agents that serve `run`

  // Returns the value of a declared parameter: int64_t, double, bool or std::string.
  template <class T>
  const T& get(std::string_view name) const {
    for (const Setting& setting : settings) {
      if (setting.key == name) return std::get<T>(setting.value);
    }
    TIERD_CHECK_MSG(false, name);
  }
};

// A matrix for `Products`: rows in the encoding, interleaved as core/model/layout/row_group.h says.
struct PackedMatrix {
  Encoding encoding = Encoding::f32;
  uint32_t n_out = 0;
  uint32_t n_in = 0;
  const std::byte* groups = nullptr;
};

// Matrix products for strategies (tierd_host::linear), on the threads of a tier that computes.
class Products {
 public:
  virtual ~Products() = default;
  // Computes y [rows x n_out] = x [rows x n_in] times the transpose of the matrix. [kernel, while no run is
  // in flight at this agent]
  virtual void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) = 0;
};

// An agent's choices for reading, with the source of each ("set", "measured: …"), for reports.
struct ReadChoices {
  uint64_t gap_bytes = 0;  // the longest gap that is read through
  std::string gap_from = {};
  bool bounced = false;  // reads land in the bounce buffer even if they could land at their destination
  std::string bounced_from = {};
  // For an agent that reads directly (kReadsDirectly): how bytes reach its memory, "cuFile" or "staged
  // through pinned memory", and why not another way.
  std::string way = {};
  std::string way_why = {};
};

// An agent, and its services beside messages.
struct MadeAgent {
  std::unique_ptr<Agent> agent;
  std::string backend = {};      // for reports: "io_uring", "avx512-vnni"
  Products* products = nullptr;  // owned by the agent; for agents that serve `run`
  ReadChoices reading = {};      // for agents that read
  // Bytes per second that `move` fetches from other memories, for forecasts; 0: at the processor's copy rate.
  double link_rate = 0;
  // Writes bytes into the agent's memory at an offset; only for agents whose memory is apart. [kernel, before
  // the first message]
  std::function<void(uint64_t offset, std::span<const std::byte> bytes)> load = {};
  // Returns the agent's counters, for reports; may be empty. [any thread; for an agent that reads at any
  // time, for one that computes while nothing is in flight there]
  std::function<AgentCounts()> counts = {};
};

constexpr uint32_t serves(Op op) {
  return 1u << static_cast<uint32_t>(op);
}
// Added to the served operations: its reads and moves may recode (kRecode).
inline constexpr uint32_t kRecodes = 1u << 30;
// Added to the served operations: its memory is apart, reachable by the agent alone. Reads do not land there;
// the agent fetches neurons from other memories itself (`move`), and its activations must be given to others.
inline constexpr uint32_t kMemoryApart = 1u << 31;
// Added to kMemoryApart: it can read the store into its memory itself. It declares a parameter
// kDirectParameter, a flag; if that is set, it receives a ReadTask besides its ComputeTask and serves `read`
// on a lane of its own.
inline constexpr uint32_t kReadsDirectly = 1u << 29;
inline constexpr const char* kDirectParameter = "direct";
// Added to the served operations: one run may cover several sites (Payload::sites). Worth it if receiving a
// run costs as much as part of computing it. For other agents one site at a time lets the kernel's thread
// drive its other agents in between.
inline constexpr uint32_t kJoinsRuns = 1u << 28;
static_assert((kRecodes ^ kMemoryApart ^ kReadsDirectly ^ kJoinsRuns) ==
              (kRecodes | kMemoryApart | kReadsDirectly | kJoinsRuns));

// The one symbol that agent-NAME.so exports. The fields up to `build_id` are the same in every version, and
// plain C: the host reads later fields only after checking size and id.
struct AgentEntry {
  uint32_t size;
  // Bits of operations and of the constants above. All agents answer `raise` and `cancel`.
  uint32_t serves;
  const char* build_id;
  const char* name;
  const char* summary;
  const tierd_param* params;
  uint32_t n_params;
  // Errors name a key or a file. The host catches exceptions.
  Result<MadeAgent> (*make)(const AgentContext& context);
};
inline bool is_apart(const AgentEntry& entry) {
  return (entry.serves & kMemoryApart) != 0;
}
static_assert(std::is_standard_layout_v<AgentEntry> && offsetof(AgentEntry, build_id) == 8);
inline constexpr const char* kAgentSymbol = "tierd_agent_entry";

}  // namespace tierd

#define TIERD_AGENT(name, summary, serves, params, make)                                              \
  extern "C" __attribute__((visibility("default"))) const ::tierd::AgentEntry tierd_agent_entry;      \
  extern "C" const ::tierd::AgentEntry tierd_agent_entry = {sizeof(::tierd::AgentEntry),              \
                                                            serves,                                   \
                                                            TIERD_BUILD_ID,                           \
                                                            name,                                     \
                                                            summary,                                  \
                                                            std::data(params),                        \
                                                            static_cast<uint32_t>(std::size(params)), \
                                                            make};
