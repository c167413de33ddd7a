// The header of a run's trace, and the plugins that a trace names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/agent/agent.h"
#include "core/run/runtime.h"
#include "core/strategy/plugin_path.h"
#include "core/watch/trace/header.h"
#include "core/watch/trace/weightless.h"

namespace tierd {

// Returns a description of the run, for people.
std::map<std::string, std::string> run_facts(const RunPlan& plan);

// `scheduler`: the options of the run's scheduler; `agents` in the dispatcher's order.
TraceHeader trace_header(const RunPlan& plan, const std::vector<std::vector<uint32_t>>& slots,
                         const Scheduler::Options& scheduler, const Dispatcher::Options& dispatcher,
                         const std::vector<const Agent*>& agents);

// Returns a function that finds strategies along `path`.
ChooseStrategy strategies_on(PluginPath path);

}  // namespace tierd
