#include "tools/tier/trace/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/statistics.h"
#include "core/base/units.h"
#include "tools/tier/trace/messages.h"

namespace tierd {
namespace {

constexpr double kMs = 1e-6;  // from ns

// The times of an agent's lane.
struct LaneTimes {
  uint64_t busy_ns = 0;   // time with at least one message being served
  uint64_t until_ns = 0;  // the end of the last service
  std::vector<double> service_ms;
  std::vector<double> wait_ms;  // from the post to the start
};

std::string strategy_text(const StrategyConfig& strategy) {
  std::string text = strategy.name;
  for (const Setting& setting : strategy.settings) {
    std::visit([&](const auto& value) { text += fmt::format(" {}={}", setting.key, value); }, setting.value);
  }
  return text;
}

TraceSummary summary_of(const TraceHeader& header) {
  TraceSummary summary;
  summary.facts = header.facts;
  summary.sites = header.sites.size();
  for (const Site& site : header.sites) summary.neurons += site.given() ? 0 : site.n;
  for (const auto& of_unit : header.slots) {
    for (const uint32_t n : of_unit) summary.slots += n;
  }
  summary.predictor = strategy_text(header.predictor);
  summary.quantizer = strategy_text(header.quantizer);
  summary.cache = strategy_text(header.cache);
  summary.balancer = strategy_text(header.balancer);
  summary.seed = header.seed;
  return summary;
}

// Takes the events of a trace one after the other.
class Summing {
 public:
  explicit Summing(const TraceHeader& header) : header_(header), summary_(summary_of(header)) {}

  void take(const Event& event) {
    ++summary_.events;
    summary_.seconds = static_cast<double>(event.ns) * 1e-9;
    std::visit([this](const auto& of) { count(of); }, event.what);
    if (const auto served = messages_.take(event)) take(*served);
  }

  TraceSummary finish() {
    for (auto& [name, lane] : lanes_) {
      auto& [figures, times] = lane;
      figures.name = name;
      figures.busy_ms = static_cast<double>(times.busy_ns) * kMs;
      figures.service_ms_p50 = quantile(times.service_ms, 0.5);
      figures.service_ms_p99 = quantile(times.service_ms, 0.99);
      figures.wait_ms_p50 = quantile(times.wait_ms, 0.5);
      figures.wait_ms_p99 = quantile(times.wait_ms, 0.99);
      summary_.lanes.push_back(std::move(figures));
    }
    return std::move(summary_);
  }

 private:
  template <class Other>
  void count(const Other&) {}
  void count(const PassBegins& pass) {
    ++summary_.passes;
    bypass_ = pass.bypass_caches;
  }
  void count(const StepEnds&) { ++(bypass_ ? summary_.prefill_steps : summary_.decode_steps); }
  void count(const Evicted& victims) { summary_.evictions += victims.neurons.size(); }
  void count(const Swapped& swapped) {
    summary_.swaps.push_back(fmt::format("{} {}", swapped.kind, swapped.strategy.name));
  }
  void count(const Resized& resized) {
    const uint64_t steps = summary_.prefill_steps + summary_.decode_steps;
    for (size_t m = 0; m < resized.parts.size(); ++m) {
      if (resized.parts[m]) summary_.budgets.push_back({steps, m + 1, *resized.parts[m]});
    }
  }
  void count(const TurnBegins&) { ++summary_.turns; }
  void count(const Interrupted&) { summary_.interrupted = true; }

  void take(const Served& served) {
    if (served.done.status != DoneStatus::ok) {
      ++summary_.not_ok[std::string(status_name(served.done.status))];
      return;
    }
    auto& [lane, times] = lanes_[lane_name(header_, served.posted)];
    ++lane.messages;
    lane.units += served.units;
    lane.bytes += served.done.bytes;
    const uint64_t start = served.done.start_ns, done = std::max(start, served.done.done_ns);
    times.busy_ns += done - std::clamp(times.until_ns, start, done);
    times.until_ns = std::max(times.until_ns, done);
    times.service_ms.push_back(static_cast<double>(done - start) * kMs);
    const uint64_t wait_ns = start > served.posted_ns ? start - served.posted_ns : 0;
    times.wait_ms.push_back(static_cast<double>(wait_ns) * kMs);
  }

  const TraceHeader& header_;
  TraceSummary summary_;
  std::map<std::string, std::pair<LaneFigures, LaneTimes>> lanes_;
  Messages messages_;
  bool bypass_ = false;  // of the last pass
};

std::string lanes_text(const std::vector<LaneFigures>& lanes) {
  std::string text = fmt::format("\n  {:<16}{:>10}{:>11}{:>12}{:>11}{:>20}{:>20}\n", "lane", "messages",
                                 "units", "bytes", "busy", "service p50/p99", "wait p50/p99");
  const auto pair = [](double a, double b) { return fmt::format("{:.2f} / {:.2f} ms", a, b); };
  for (const LaneFigures& lane : lanes) {
    text +=
        fmt::format("  {:<16}{:>10}{:>11}{:>12}{:>11}{:>20}{:>20}\n", lane.name, lane.messages, lane.units,
                    format_bytes(static_cast<double>(lane.bytes)), format_duration(lane.busy_ms * 1e-3),
                    pair(lane.service_ms_p50, lane.service_ms_p99), pair(lane.wait_ms_p50, lane.wait_ms_p99));
  }
  return text;
}

}  // namespace

Result<TraceSummary> trace_summary(TraceReader& trace) {
  Summing summing(trace.header());
  for (; const Event* event = trace.peek(); trace.next()) summing.take(*event);
  TIERD_TRY(trace.status());
  TraceSummary summary = summing.finish();
  summary.file = trace.path();
  summary.whole = trace.whole() || summary.interrupted;
  return summary;
}

std::string summary_text(const TraceSummary& s) {
  std::string text = fmt::format("{}: {} prefill and {} decode steps in {}\n", s.file, s.prefill_steps,
                                 s.decode_steps, format_duration(s.seconds));
  if (!s.whole) text += "  the file was cut off: what is here is right, its end is missing\n";
  if (s.interrupted) text += "  the run was interrupted\n";
  const auto line = [&](std::string_view key, std::string_view value) {
    text += fmt::format("  {:<11} {}\n", key, value);
  };
  for (const auto& [key, value] : s.facts) line(key, value);
  line("predictor", s.predictor);
  line("quantizer", s.quantizer);
  line("cache", s.cache);
  line("balancer", s.balancer);
  for (const std::string& swap : s.swaps) line("then", swap);
  for (const ChangedBudget& budget : s.budgets) {
    line("budget", fmt::format("{} for weights in memory {} after {} steps",
                               format_bytes(static_cast<double>(budget.arena_bytes)), budget.memory,
                               budget.after_steps));
  }
  line("sites", fmt::format("{} with {} neurons, slots for {}", s.sites, s.neurons, s.slots));
  line("kernel",
       fmt::format("{} events, {} passes, {} turns, {} evictions", s.events, s.passes, s.turns, s.evictions));
  text += lanes_text(s.lanes);
  for (const auto& [status, count] : s.not_ok)
    text += fmt::format("  {} messages ended as {}\n", count, status);
  return text;
}

}  // namespace tierd
