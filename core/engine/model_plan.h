// Turns a store's manifest into what the kernel schedules (sites) and what each computing agent runs
// (programs). With unit_plan.h this is the one place that knows how a transformer layer is put together out
// of sites and dense segments.
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

  // What all units have in common: shapes, buffers, editions.
  const ComputePlan& any() const { return units.front().compute; }
};

// What the kernel knows of a cut: how many neurons there are, how their results become the site's, and the
// number by which plugins are told.
void cut_site(Site& site, const Cut& cut);

// What becomes of neurons on their way into a memory.
struct MadeThere {
  bool expands = false;  // what the store has compressed is expanded
  bool recodes = false;  // they are encoded anew in the edition in which they are wanted
};

// Says in which editions a memory holds those of the plan (Memory::held), which is nothing where none of them
// is made of another one; and that its unit, kNoUnit for none, computes from those.
void hold_editions(ModelPlan& plan, Memory& memory, uint16_t unit, MadeThere there);

// `manifest` as read_manifest checked it. `options`: units that there are.
ModelPlan plan_model(const Manifest& manifest, const ModelOptions& options);

}  // namespace tierd
