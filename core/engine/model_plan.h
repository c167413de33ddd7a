// Turns a store's manifest into sites for the kernel and programs for each computing agent. Only this file
// and unit_plan.h know how a transformer layer is made of sites and dense segments.
#pragma once

#include <cstdint>
#include <vector>

#include "core/agent/program.h"
#include "core/base/result.h"
#include "core/engine/unit_plan.h"
#include "core/kernel/memory.h"
#include "core/kernel/site.h"
#include "core/store/manifest.h"

namespace tierd {

struct ModelPlan {
  SiteTable sites;  // the first is the embedding, the last the head
  std::vector<UnitPlan> units;

  // The part that all units have in common: shapes, buffers, editions.
  const ComputePlan& any() const { return units.front().compute; }
};

// Sets the fields of a site that describe its cut: the number of neurons, how their results become the
// site's, and the axis number for plugins.
void cut_site(Site& site, const Cut& cut);

// The conversions of neurons on their way into a memory.
struct MadeThere {
  bool expands = false;  // compressed neurons are expanded
  bool recodes = false;  // neurons are encoded in the edition in which they are wanted
};

// Sets the editions that a memory holds (Memory::held), empty if no edition is made of another, and restricts
// its unit, kNoUnit for none, to them.
void hold_editions(ModelPlan& plan, Memory& memory, uint16_t unit, MadeThere there);

// `manifest`: checked by read_manifest. `options`: names existing units.
ModelPlan plan_model(const Manifest& manifest, const ModelOptions& options);

}  // namespace tierd
