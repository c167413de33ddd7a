// How an agent is exported from its shared object, agent-NAME.so, and what it is given when it is made:
//
//   Result<MadeAgent> make(const AgentContext& context) { … }
//   TIERD_AGENT("mine", "what it is, in a line", serves(Op::read), kParams, make)      // outside any
//   namespace
//
// Unlike the interface of strategies (core/include/tierd) this is C++: an agent is built against the headers
// of the very tierd that loads it, by the same compiler with the same flags. The build id says whether it
// was.
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

// What an agent that reads is for: a store's file. All of it outlives the agent.
struct ReadTask {
  std::string path;
  ExtentTable extents;
  std::span<const ExtentPieces> pieces = {};  // of all neurons that are more than one extent
  // What reads with kRecode expand, in the order of the extents, and the instruction set that does it.
  std::span<const CompressedExtents> compressed = {};
  std::string kernels = "auto";
  std::span<std::byte> landing;  // where most reads will land, worth pinning
  uint64_t memory_bytes = 0;     // of all that reads will land in
  // What the agent may take for reads that cannot land where they belong, a multiple of 4096: at least twice
  // the blocks that hold the largest extent that is not aligned, or is expanded; 0 if there is none. For
  // an agent that reads directly every extent counts.
  uint64_t bounce_bytes = 0;
  OpenDevice open_device = {};  // how tests have the file opened; empty: as the agent does
  // In virtual time: puts a described device before the file's, `depth` reads deep, and says which gaps it is
  // worth to read through. Nothing is measured then.
  struct Described {
    std::function<std::unique_ptr<BlockDevice>(std::unique_ptr<BlockDevice> device, uint32_t depth)> device;
    uint64_t gap_bytes = 0;
    bool reads = true;  // else nothing is read, and so nothing can be verified
  };
  std::optional<Described> described = {};
};

// What an agent that computes is for: a model, and the memory of its weights. It registers two things in the
// table of pools. Its memory has arena, staging and resident tensors, side by side; the first two begin at
// multiples of 4096. Most of the arena's addresses may never be used: an agent that serves `resize` is told
// which are, before the first read. Its activations are the buffers of the plan, as buffer_offsets() puts
// them. It takes the resident tensors' values from where they are, once messages come. An agent whose memory
// is apart registers its activations alone, and is handed the tensors (MadeAgent::load).
struct ComputeTask {
  MemoryId memory = 1;  // its number
  ComputePlan plan;
  uint64_t arena_bytes = 0;
  uint64_t staging_bytes = 0;
  uint64_t tensor_bytes = 0;
  std::vector<uint64_t> tensors = {};  // [TensorId] bytes from the beginning of the memory
  std::string kernels = "auto";        // instruction set
  uint32_t threads = 1;                // that compute, the one that drives the agent included
  std::vector<uint32_t> cores = {};    // [threads] that they are bound to; none: they are not
  bool described = false;              // virtual time: how long a message takes is not the agent's business
};

// What `make` is given. It lives as long as that call; what it refers to, as said.
struct AgentContext {
  uint16_t number = 0;  // the agent's, in the table of pools and in messages
  std::string table;    // of the configuration, "tiers.flash": errors about a parameter name it
  PoolTable& pools;     // outlives the agent; `make` adds the agent's own
  const Clock& clock;   // that completions are stamped by; outlives the agent
  // It is driven by a thread of its own, not between other work of the kernel's.
  bool own_thread = false;
  std::span<const Setting> settings = {};   // each declared parameter, checked
  std::optional<ReadTask> read = {};        // for agents that serve `read`, or are to read directly
  std::optional<ComputeTask> compute = {};  // for agents that serve `run`

  // The value of a parameter that the entry declares: int64_t, double, bool or std::string.
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

// Products that strategies ask for (tierd_host::linear), by the threads of a tier that computes.
class Products {
 public:
  virtual ~Products() = default;
  // y [rows x n_out] = x [rows x n_in] times the transpose of the matrix. [kernel, while nothing that
  // computes is in flight at this agent]
  virtual void linear(const PackedMatrix& matrix, const float* x, uint32_t rows, float* y) = 0;
};

// How an agent reads, and where that comes from ("set", "measured: …"), for reports.
struct ReadChoices {
  uint64_t gap_bytes = 0;  // the longest gap that is read through
  std::string gap_from = {};
  bool bounced = false;  // what could land where it belongs is copied there
  std::string bounced_from = {};
  // An agent that reads directly (kReadsDirectly) says how what it reads comes into its memory, "cuFile" or
  // "staged through pinned memory", and why not another way.
  std::string way = {};
  std::string way_why = {};
};

// An agent, and what it offers beside messages.
struct MadeAgent {
  std::unique_ptr<Agent> agent;
  std::string backend = {};      // what it works with, for reports: "io_uring", "avx512-vnni"
  Products* products = nullptr;  // the agent's own; for agents that serve `run`
  ReadChoices reading = {};      // of agents that read
  // Bytes a second that `move` brings from other memories, for forecasts; 0: as fast as the processor copies.
  double link_rate = 0;
  // Agents whose memory is apart have it: it writes there, so many bytes from its beginning. [kernel, before
  // the first message]
  std::function<void(uint64_t offset, std::span<const std::byte> bytes)> load = {};
  // What it has done, for reports; may be empty. [any thread; of an agent that reads at any time, of one that
  // computes while nothing is in flight there]
  std::function<AgentCounts()> counts = {};
};

constexpr uint32_t serves(Op op) {
  return 1u << static_cast<uint32_t>(op);
}
// Beside what an agent serves: its reads and moves may recode (kRecode).
inline constexpr uint32_t kRecodes = 1u << 30;
// Beside what an agent serves: its memory is apart, reached by itself alone. Reads do not land there, it
// brings neurons from other memories by itself (`move`), and what is wanted of its activations must be given.
inline constexpr uint32_t kMemoryApart = 1u << 31;
// Beside kMemoryApart: it can read the store into its memory by itself. It declares a parameter
// kDirectParameter, a flag; where that is set, it is given a ReadTask beside its ComputeTask and serves
// `read` on a lane of its own.
inline constexpr uint32_t kReadsDirectly = 1u << 29;
inline constexpr const char* kDirectParameter = "direct";
// Beside what an agent serves: one of its runs may be of several sites (Payload::sites). Worth it where to be
// given a run costs as much as a part of computing it; to whom it costs nothing, one site at a time lets the
// kernel's thread see to its other agents between them.
inline constexpr uint32_t kJoinsRuns = 1u << 28;
static_assert((kRecodes ^ kMemoryApart ^ kReadsDirectly ^ kJoinsRuns) ==
              (kRecodes | kMemoryApart | kReadsDirectly | kJoinsRuns));

// The one symbol that agent-NAME.so exports. Up to and with `build_id` it is the same in every version, and
// plain C: nothing behind is looked at before size and id have been found right.
struct AgentEntry {
  uint32_t size;
  // Bits, kRecodes, kMemoryApart, kReadsDirectly, kJoinsRuns; `raise` and `cancel` are answered by all.
  uint32_t serves;
  const char* build_id;
  const char* name;
  const char* summary;
  const tierd_param* params;
  uint32_t n_params;
  // Errors name a key or a file. Exceptions are caught by the host.
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
