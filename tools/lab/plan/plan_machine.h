// The measurements of the machine that a plan needs.
#pragma once

#include <string>

#include "core/base/read_curve.h"
#include "core/run/run_plan.h"
#include "tools/lab/plan/plan_figures.h"

namespace tierd {

struct PlanMachine {
  double memory_rate = 0;  // bytes a second of all threads together
  ReadCurve flash;         // random reads of the store
  double first_read = 0;   // seconds of a small read without another read in flight
};

// Takes about two seconds; no other reads may be in flight. Errors: those of measure_read and
// measure_memory_read.
Result<PlanMachine> measure_machine(const RunPlan& plan);

// Adds the measurements to a plan.
void add_machine(PlanFigures& found, const PlanMachine& machine);
// Returns "measured: DRAM 40 GB/s; flash, random reads: 4 KiB 0.5 ... GB/s, one alone 0.1 ms" from the fields
// of add_machine.
std::string machine_text(const PlanFigures& found);

}  // namespace tierd
