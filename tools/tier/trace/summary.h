// The summary of a trace, on one screen.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/report/figure.h"
#include "core/watch/trace/reader.h"

namespace tierd {

// The work of an agent's lane.
struct LaneFigures {
  std::string name;
  uint64_t messages = 0, units = 0, bytes = 0;
  double busy_ms = 0, service_ms_p50 = 0, service_ms_p99 = 0, wait_ms_p50 = 0, wait_ms_p99 = 0;

  static constexpr auto figures() {
    using F = LaneFigures;
    return std::tuple(
        Figure{&F::name, "name", Quantity::text, Adds::latest, "agent and lane"},
        Figure{&F::messages, "messages", Quantity::count, Adds::latest, "that ended well"},
        Figure{&F::units, "units", Quantity::count, Adds::latest, "of these messages"},
        Figure{&F::bytes, "bytes", Quantity::bytes, Adds::latest, "of these messages"},
        Figure{&F::busy_ms, "busy_ms", Quantity::ms, Adds::latest, "with a message being served"},
        Figure{&F::service_ms_p50, "service_ms_p50", Quantity::ms, Adds::latest, "median of a service"},
        Figure{&F::service_ms_p99, "service_ms_p99", Quantity::ms, Adds::latest, "99 % are shorter"},
        Figure{&F::wait_ms_p50, "wait_ms_p50", Quantity::ms, Adds::latest, "median from post to start"},
        Figure{&F::wait_ms_p99, "wait_ms_p99", Quantity::ms, Adds::latest, "99 % are shorter"});
  }
};

// A budget that was changed during the run.
struct ChangedBudget {
  uint64_t after_steps = 0, memory = 0, arena_bytes = 0;

  static constexpr auto figures() {
    using F = ChangedBudget;
    return std::tuple(
        Figure{&F::after_steps, "after_steps", Quantity::count, Adds::latest, "of prefill and decode"},
        Figure{&F::memory, "memory", Quantity::count, Adds::latest, "its number, from 1"},
        Figure{&F::arena_bytes, "arena_bytes", Quantity::bytes, Adds::latest, "for weights"});
  }
};

struct TraceSummary {
  std::string file;
  std::map<std::string, std::string> facts;
  uint64_t sites = 0, neurons = 0, slots = 0, seed = 0;
  std::string predictor, quantizer, cache, balancer;
  std::vector<std::string> swaps;
  std::vector<ChangedBudget> budgets;
  double seconds = 0;
  uint64_t prefill_steps = 0, decode_steps = 0, passes = 0, turns = 0, events = 0, evictions = 0;
  std::vector<LaneFigures> lanes;
  std::map<std::string, uint64_t> not_ok;
  bool interrupted = false, whole = true;

  static constexpr auto figures() {
    using F = TraceSummary;
    return std::tuple(
        Figure{&F::file, "file", Quantity::text, Adds::latest, "the trace"},
        Figure{&F::facts, "facts", Quantity::text, Adds::latest, "on model, budget and threads"},
        Figure{&F::sites, "sites", Quantity::count, Adds::latest, "of the model"},
        Figure{&F::neurons, "neurons", Quantity::count, Adds::latest, "of sites that choose by themselves"},
        Figure{&F::slots, "slots", Quantity::count, Adds::latest, "of all memories"},
        Figure{&F::predictor, "predictor", Quantity::text, Adds::latest, "name and settings"},
        Figure{&F::quantizer, "quantizer", Quantity::text, Adds::latest, "name and settings"},
        Figure{&F::cache, "cache", Quantity::text, Adds::latest, "name and settings"},
        Figure{&F::balancer, "balancer", Quantity::text, Adds::latest, "name and settings"},
        Figure{&F::swaps, "swaps", Quantity::text, Adds::latest, "kind and name of later strategies"},
        Figure{&F::budgets, "budgets", Quantity::parts, Adds::latest, "changes during the run"},
        Figure{&F::seed, "seed", Quantity::count, Adds::latest, "of the run"},
        Figure{&F::seconds, "seconds", Quantity::seconds, Adds::latest, "until the last event"},
        Figure{&F::prefill_steps, "prefill_steps", Quantity::count, Adds::latest, "bypassed the caches"},
        Figure{&F::decode_steps, "decode_steps", Quantity::count, Adds::latest, "used the caches"},
        Figure{&F::passes, "passes", Quantity::count, Adds::latest, "of all steps"},
        Figure{&F::turns, "turns", Quantity::count, Adds::latest, "of the kernel's loop"},
        Figure{&F::events, "events", Quantity::count, Adds::latest, "of the trace"},
        Figure{&F::evictions, "evictions", Quantity::count, Adds::latest, "neurons"},
        Figure{&F::lanes, "lanes", Quantity::parts, Adds::latest, "of the agents"},
        Figure{&F::not_ok, "not_ok", Quantity::count, Adds::latest, "messages by their status"},
        Figure{&F::interrupted, "interrupted", Quantity::flag, Adds::latest, "the run was"},
        Figure{&F::whole, "whole", Quantity::flag, Adds::latest, "the file was not cut off"});
  }
};

// Errors: those of the trace.
Result<TraceSummary> trace_summary(TraceReader& trace);
std::string summary_text(const TraceSummary& summary);

}  // namespace tierd
