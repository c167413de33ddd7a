// Says in which order the missing neurons of a site are read whose results are added.
#pragma once

#include "core/kernel/site.h"
#include "core/kernel/supply/plan.h"

namespace tierd {

// Runs are computed in their order, each when it is whole. What a run lets stream by is one read into one
// block, whatever is kept between (a read takes whole runs), and reads start in this order, so that no pass
// waits for ever. Let r be the first run of which something is missing. If all of it was asked for, it will
// land. If not, the plan goes on with r, the reads of the plan so far brought earlier runs alone, and those
// were handed out: their blocks come back. Whatever else holds blocks was read ahead, for this site or a
// later one, which leaves a block to the demand at any time. What is kept needs no block.
//
// A pass of several editions fetches them one after the other, and computes them in that order: their plans
// follow each other like the runs of one, and the argument is the same.
//
// `plan`: one that nothing was taken from.
void sort_by_runs(const Site& site, Plan& plan);

}  // namespace tierd
