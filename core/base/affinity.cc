#include "core/base/affinity.h"

#include <hwloc.h>

#include <algorithm>
#include <memory>

namespace tierd {
namespace {

struct Topology {
  hwloc_topology_t handle = nullptr;
  Topology() {
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
};

hwloc_topology_t topology() {
  static const Topology the_topology;  // reading it takes milliseconds; it does not change
  return the_topology.handle;
}

}  // namespace

uint32_t available_cores() {
  if (topology() == nullptr) return 1;
  return static_cast<uint32_t>(std::max(1, hwloc_get_nbobjs_by_type(topology(), HWLOC_OBJ_PU)));
}

Status bind_this_thread(uint32_t core) {
  const Error refused{Code::unsupported, "hwloc", "this system does not let a thread be bound to a core"};
  if (topology() == nullptr) return refused;
  const hwloc_obj_t unit = hwloc_get_obj_by_type(topology(), HWLOC_OBJ_PU, core % available_cores());
  if (unit == nullptr || hwloc_set_cpubind(topology(), unit->cpuset, HWLOC_CPUBIND_THREAD) != 0)
    return refused;
  return {};
}

}  // namespace tierd
