#include "core/system/cores.h"

#include <hwloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <memory>
#include <set>
#include <tuple>

#include "core/system/cpu_quota.h"

namespace tierd {
namespace {

constexpr double kShortOfAThread = 0.25;
constexpr uint64_t kShortSliceNs = 100'000;  // the shortest that Linux grants

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

// hwloc retries with ever larger sets of processors until the kernel answers; if a sandbox refuses the call,
// hwloc would loop for ever.
bool answers_affinity() {
  cpu_set_t set;
  return ::sched_getaffinity(0, sizeof set, &set) == 0 || errno == EINVAL;
}

struct Topology {
  hwloc_topology_t handle = nullptr;
  Topology() {
    if (!answers_affinity()) return;
    if (hwloc_topology_init(&handle) != 0) {
      handle = nullptr;
    } else if (hwloc_topology_load(handle) != 0) {
      hwloc_topology_destroy(handle);
      handle = nullptr;
    }
  }
  ~Topology() {
    if (handle != nullptr) hwloc_topology_destroy(handle);
  }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
};

hwloc_topology_t topology() {
  static const Topology the_topology;  // reading it takes milliseconds; it does not change
  return the_topology.handle;
}

std::vector<uint32_t> indices_of(hwloc_const_bitmap_t bitmap) {
  std::vector<uint32_t> indices;
  for (int i = hwloc_bitmap_first(bitmap); i >= 0; i = hwloc_bitmap_next(bitmap, i))
    indices.push_back(static_cast<uint32_t>(i));
  return indices;
}

// Returns the units that the scheduler may run this process on (taskset); empty, which means all, for a
// topology that is not this machine's.
std::vector<uint32_t> affinity(hwloc_topology_t of) {
  if (hwloc_topology_is_thissystem(of) == 0) return {};
  const Bitmap bound(hwloc_bitmap_alloc());
  if (bound == nullptr || hwloc_get_cpubind(of, bound.get(), HWLOC_CPUBIND_PROCESS) != 0) return {};
  return indices_of(bound.get());
}

// Returns the rank of the unit's kind of core; 0 is the fastest.
int rank_of_kind(hwloc_topology_t of, hwloc_obj_t unit) {
  const int kinds = hwloc_cpukinds_get_nr(of, 0);
  const int kind = hwloc_cpukinds_get_by_cpuset(of, unit->cpuset, 0);
  if (kinds <= 0 || kind < 0) return 0;
  int efficiency = -1;
  (void)hwloc_cpukinds_get_info(of, static_cast<unsigned>(kind), nullptr, &efficiency, nullptr, nullptr, 0);
  return efficiency < 0 ? 0 : kinds - 1 - efficiency;  // hwloc's grows with performance
}

uint32_t node_of(hwloc_topology_t of, hwloc_obj_t unit) {
  const int node = hwloc_bitmap_first(unit->nodeset);
  const hwloc_obj_t object =
      node < 0 ? nullptr : hwloc_get_numanode_obj_by_os_index(of, static_cast<unsigned>(node));
  return object == nullptr ? 0 : object->logical_index;
}

uint32_t threads_within(uint32_t cores, std::optional<double> quota) {
  if (!quota) return cores;
  const double whole = std::floor(std::max(*quota, 0.0) + kShortOfAThread);
  return static_cast<uint32_t>(std::clamp<double>(whole, 1, cores));
}

}  // namespace

std::vector<uint32_t> CoreMap::nodes_of(std::span<const uint32_t> places) const {
  std::set<uint32_t> nodes;
  for (const uint32_t place : places) nodes.insert(units[place % units.size()].node);
  return {nodes.begin(), nodes.end()};
}

CoreMap map_cores(hwloc_topology* of, std::span<const uint32_t> allowed, std::optional<double> quota) {
  // Sibling number in its core, kind, position in the machine.
  std::vector<std::tuple<uint32_t, int, uint32_t, CoreMap::Unit>> found;
  std::vector<std::pair<hwloc_obj_t, uint32_t>> siblings;  // units counted so far, by core
  const auto n = static_cast<uint32_t>(std::max(0, hwloc_get_nbobjs_by_type(of, HWLOC_OBJ_PU)));
  for (uint32_t i = 0; i < n; ++i) {
    const hwloc_obj_t unit = hwloc_get_obj_by_type(of, HWLOC_OBJ_PU, i);
    if (!allowed.empty() && std::ranges::find(allowed, unit->os_index) == allowed.end()) continue;
    const hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(of, HWLOC_OBJ_CORE, unit);
    uint32_t sibling = 0;
    if (core != nullptr) {
      auto known = std::ranges::find(siblings, core, &std::pair<hwloc_obj_t, uint32_t>::first);
      if (known == siblings.end()) known = siblings.insert(siblings.end(), {core, 0});
      sibling = known->second++;
    }
    found.emplace_back(sibling, rank_of_kind(of, unit), i, CoreMap::Unit{unit->os_index, node_of(of, unit)});
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
  });
  CoreMap map;
  map.cores = 0;
  for (const auto& [sibling, kind, place, unit] : found) {
    map.units.push_back(unit);
    if (sibling == 0) ++map.cores;
  }
  if (map.units.empty()) map.units.emplace_back();
  map.cores = std::max(map.cores, 1u);
  map.threads = threads_within(map.cores, quota);
  return map;
}

const CoreMap& own_cores() {
  static const CoreMap the_map = [] {
    const std::optional<double> quota = own_cpu_quota();
    const hwloc_topology_t of = topology();
    if (of == nullptr) return CoreMap{.units = {CoreMap::Unit()}};
    return map_cores(of, affinity(of), quota);
  }();
  return the_map;
}

Status bind_this_thread(uint32_t place) {
  const Error refused{Code::unsupported, "hwloc", "this system does not let a thread be bound to a core"};
  if (topology() == nullptr) return refused;
  const std::vector<CoreMap::Unit>& units = own_cores().units;
  const hwloc_obj_t unit = hwloc_get_pu_obj_by_os_index(topology(), units[place % units.size()].os_index);
  if (unit == nullptr || hwloc_set_cpubind(topology(), unit->cpuset, HWLOC_CPUBIND_THREAD) != 0)
    return refused;
  return {};
}

void take_short_slices() {
  // struct sched_attr, which the C library does not declare. For a thread that is not real-time, `runtime` is
  // the length of its time slice.
  struct Attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  };
  Attributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.runtime = kShortSliceNs;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void give_way() {
  // A tenth of the weight of the default. With 19 a thread gets next to nothing beside another program's
  // threads, and the thread that waits for its results stands still.
  constexpr int kLow = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), kLow);
}

void interleave_over_nodes(std::span<std::byte> memory, std::span<const uint32_t> places) {
  if (topology() == nullptr || memory.empty()) return;
  const std::vector<uint32_t> nodes = own_cores().nodes_of(places);
  if (nodes.size() < 2) return;
  const Bitmap set(hwloc_bitmap_alloc());
  if (set == nullptr) return;
  for (const uint32_t node : nodes) {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology(), HWLOC_OBJ_NUMANODE, node);
    if (object != nullptr) hwloc_bitmap_set(set.get(), object->os_index);
  }
  (void)hwloc_set_area_membind(topology(), memory.data(), memory.size(), set.get(), HWLOC_MEMBIND_INTERLEAVE,
                               HWLOC_MEMBIND_BYNODESET);
}

}  // namespace tierd
