#include "tools/tier/trace/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/statistics.h"
#include "core/base/units.h"
#include "tools/tier/trace/messages.h"

namespace tierd {
namespace {

using nlohmann::json;

// The work of an agent's lane.
struct Lane {
  uint64_t messages = 0;
  uint64_t units = 0;
  uint64_t bytes = 0;
  uint64_t busy_ns = 0;   // time with at least one message being served
  uint64_t until_ns = 0;  // the end of the last service
  std::vector<double> service_ms;
  std::vector<double> wait_ms;  // from the post to the start
};

double ms(uint64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

json strategy_text(const StrategyConfig& strategy) {
  std::string text = strategy.name;
  for (const Setting& setting : strategy.settings) {
    std::visit([&](const auto& value) { text += fmt::format(" {}={}", setting.key, value); }, setting.value);
  }
  return text;
}

}  // namespace

Result<json> summary_json(TraceReader& trace) {
  const TraceHeader& header = trace.header();
  std::map<std::string, Lane> lanes;
  std::map<std::string, uint64_t> evictions;  // by site
  std::map<std::string, uint64_t> statuses;
  json swaps = json::array();
  json budgets = json::array();
  uint64_t events = 0, passes = 0, turns = 0, end_ns = 0;
  uint64_t prefill_steps = 0, decode_steps = 0, evicted = 0;
  bool bypass = false, interrupted = false;
  Messages messages;
  for (; const Event* event = trace.peek(); trace.next(), ++events) {
    end_ns = event->ns;
    if (const auto* pass = event->as<PassBegins>()) {
      ++passes;
      bypass = pass->bypass_caches;
    } else if (event->as<StepEnds>() != nullptr) {
      ++(bypass ? prefill_steps : decode_steps);
    } else if (const auto* victims = event->as<Evicted>()) {
      evicted += victims->neurons.size();
    } else if (const auto* swapped = event->as<Swapped>()) {
      swaps.push_back(fmt::format("{} {}", swapped->kind, swapped->strategy.name));
    } else if (const auto* resized = event->as<Resized>()) {
      for (size_t m = 0; m < resized->parts.size(); ++m) {
        if (!resized->parts[m]) continue;
        budgets.push_back({{"after_steps", prefill_steps + decode_steps},
                           {"memory", m + 1},
                           {"arena_bytes", *resized->parts[m]}});
      }
    } else if (event->as<TurnBegins>() != nullptr) {
      ++turns;
    } else if (event->as<Interrupted>() != nullptr) {
      interrupted = true;
    }
    const auto served = messages.take(*event);
    if (!served || served->done.status != DoneStatus::ok) {
      if (served) ++statuses[status_name(served->done.status)];
      continue;
    }
    Lane& lane = lanes[lane_name(header, served->posted)];
    ++lane.messages;
    lane.units += served->units;
    lane.bytes += served->done.bytes;
    const uint64_t start = served->done.start_ns, done = std::max(start, served->done.done_ns);
    lane.busy_ns += done - std::clamp(lane.until_ns, start, done);
    lane.until_ns = std::max(lane.until_ns, done);
    lane.service_ms.push_back(ms(done - start));
    lane.wait_ms.push_back(start > served->posted_ns ? ms(start - served->posted_ns) : 0);
  }
  TIERD_TRY(trace.status());

  json lines = json::array();
  for (auto& [name, lane] : lanes) {
    lines.push_back({{"name", name},
                     {"messages", lane.messages},
                     {"units", lane.units},
                     {"bytes", lane.bytes},
                     {"busy_ms", ms(lane.busy_ns)},
                     {"service_ms_p50", quantile(lane.service_ms, 0.5)},
                     {"service_ms_p99", quantile(lane.service_ms, 0.99)},
                     {"wait_ms_p50", quantile(lane.wait_ms, 0.5)},
                     {"wait_ms_p99", quantile(lane.wait_ms, 0.99)}});
  }
  uint64_t neurons = 0, slots = 0;
  for (const Site& site : header.sites) neurons += site.given() ? 0 : site.n;
  for (const auto& of_unit : header.slots) {
    for (const uint32_t n : of_unit) slots += n;
  }
  return json{{"file", trace.path()},
              {"facts", header.facts},
              {"sites", header.sites.size()},
              {"neurons", neurons},
              {"slots", slots},
              {"predictor", strategy_text(header.predictor)},
              {"quantizer", strategy_text(header.quantizer)},
              {"cache", strategy_text(header.cache)},
              {"balancer", strategy_text(header.balancer)},
              {"swaps", swaps},
              {"budgets", budgets},
              {"seed", header.seed},
              {"seconds", static_cast<double>(end_ns) * 1e-9},
              {"prefill_steps", prefill_steps},
              {"decode_steps", decode_steps},
              {"passes", passes},
              {"turns", turns},
              {"events", events},
              {"evictions", evicted},
              {"lanes", lines},
              {"not_ok", statuses},
              {"interrupted", interrupted},
              {"whole", trace.whole() || interrupted}};
}

std::string summary_text(const json& s) {
  std::string text = fmt::format("{}: {} prefill and {} decode steps in {}\n", s["file"].get<std::string>(),
                                 s["prefill_steps"].get<uint64_t>(), s["decode_steps"].get<uint64_t>(),
                                 format_duration(s["seconds"].get<double>()));
  if (!s["whole"].get<bool>()) text += "  the file was cut off: what is here is right, its end is missing\n";
  if (s["interrupted"].get<bool>()) text += "  the run was interrupted\n";
  for (const auto& [key, value] : s["facts"].items())
    text += fmt::format("  {:<11} {}\n", key, value.get<std::string>());
  for (const char* kind : {"predictor", "quantizer", "cache", "balancer"})
    text += fmt::format("  {:<11} {}\n", kind, s[kind].get<std::string>());
  for (const json& swap : s["swaps"]) text += fmt::format("  {:<11} {}\n", "then", swap.get<std::string>());
  for (const json& budget : s["budgets"]) {
    text += fmt::format("  {:<11} {} for weights in memory {} after {} steps\n", "budget",
                        format_bytes(budget["arena_bytes"].get<double>()), budget["memory"].get<uint64_t>(),
                        budget["after_steps"].get<uint64_t>());
  }
  text += fmt::format("  {:<11} {} with {} neurons, slots for {}\n", "sites", s["sites"].get<uint64_t>(),
                      s["neurons"].get<uint64_t>(), s["slots"].get<uint64_t>());
  text += fmt::format("  {:<11} {} events, {} passes, {} turns, {} evictions\n", "kernel",
                      s["events"].get<uint64_t>(), s["passes"].get<uint64_t>(), s["turns"].get<uint64_t>(),
                      s["evictions"].get<uint64_t>());
  text += fmt::format("\n  {:<16}{:>10}{:>11}{:>12}{:>11}{:>20}{:>20}\n", "lane", "messages", "units",
                      "bytes", "busy", "service p50/p99", "wait p50/p99");
  for (const json& e : s["lanes"]) {
    const auto pair = [&](const char* a, const char* b) {
      return fmt::format("{:.2f} / {:.2f} ms", e[a].get<double>(), e[b].get<double>());
    };
    text += fmt::format("  {:<16}{:>10}{:>11}{:>12}{:>11}{:>20}{:>20}\n", e["name"].get<std::string>(),
                        e["messages"].get<uint64_t>(), e["units"].get<uint64_t>(),
                        format_bytes(e["bytes"].get<double>()),
                        format_duration(e["busy_ms"].get<double>() * 1e-3),
                        pair("service_ms_p50", "service_ms_p99"), pair("wait_ms_p50", "wait_ms_p99"));
  }
  for (const auto& [status, count] : s["not_ok"].items())
    text += fmt::format("  {} messages ended as {}\n", count.get<uint64_t>(), status);
  return text;
}

}  // namespace tierd
