#include "tools/tierd/tier_report.h"

#include "tools/tierd/report.h"

namespace tierd {
namespace {

BudgetFigures budget_figures(const Runtime& runtime, size_t tier) {
  const Budget& budget = runtime.budget(tier);
  const TierMemory& memory = runtime.plan().memory.tiers[tier];
  const MemoryLimit& most = runtime.plan().memory.most;
  BudgetFigures figures{.capacity_bytes = budget.capacity(),
                        .peak_bytes = budget.peak(),
                        .used_bytes = budget.used(),
                        .least_bytes = memory.least,
                        .changes = {},
                        .raised_to_least = memory.raised_to_least,
                        .chosen = memory.automatic,
                        .limit = {most.source, most.left_bytes},
                        .lines = {}};
  for (const Budget::Line& line : budget.lines()) figures.lines[line.name] = line.bytes;
  for (const Runtime::BudgetChange& change : runtime.budget_changes()) {
    if (change.tier != tier) continue;
    figures.changes.push_back({change.step, change.to, change.resident, change.raised_to_least});
  }
  return figures;
}

NeuronFigures neuron_figures(const MemoryCounters& counters) {
  const UseCounters asked = counters.asked();
  return {.hits = asked.hits,
          .staged = asked.staged,
          .misses = asked.misses,
          .evictions = counters.evictions,
          .wasted = counters.wasted,
          .prefetch_failed = counters.prefetch_failed,
          .retries = counters.retries,
          .resident_bytes = asked.resident_bytes,
          .streamed_bytes = asked.streamed_bytes};
}

// Returns none where the tier's agents do not read the store themselves.
std::optional<DirectFigures> direct_figures(const Runtime& runtime, size_t tier) {
  const auto direct = runtime.direct_reads(tier);
  if (!direct) return std::nullopt;
  return DirectFigures{direct->way.empty() ? "described" : direct->way, direct->way_why, direct->counts.bytes,
                       direct->counts.verified_bytes};
}

MemoryTierFigures memory_figures(const Runtime& runtime, size_t tier) {
  const TierTable& tiers = runtime.plan().tiers;
  const TierConfig& config = tiers.memories[tier].config;
  MemoryTierFigures figures{.count = config.count,
                            .over = config.over.empty() ? tiers.store.config.name : config.over,
                            .computes = config.compute,
                            .direct = direct_figures(runtime, tier),
                            .budget = budget_figures(runtime, tier),
                            .neurons = neuron_figures(runtime.counters(tier)),
                            .moves = {},
                            .runs = {}};
  const MoveCounts moves = runtime.move_counts(tier);
  if (moves.read_in_place + moves.gathered != 0) figures.moves = MoveFigures{moves};
  const RunCounts runs = runtime.run_counts(tier);
  if (runs.runs != 0) figures.runs = LaunchFigures{runs};
  return figures;
}

// Returns "staged through pinned memory (why); 1.2 GB, all verified".
std::string direct_text(const DirectFigures& direct) {
  const std::string verified =
      direct.verified_bytes == direct.bytes
          ? "all verified"
          : size_text(direct.verified_bytes) + " verified when they were loaded first, the rest unverified";
  return fmt::format("reads of flash are {}{}; {}, {}", direct.way,
                     direct.why.empty() ? "" : fmt::format(" ({})", direct.why), size_text(direct.bytes),
                     verified);
}

// Returns how the capacity was chosen, where it was not given: the least, or a limit of memory.
std::string origin_text(const BudgetFigures& budget) {
  if (budget.raised_to_least) return " (raised to the least)";
  if (!budget.chosen) return "";
  return fmt::format(" (auto: {} leaves {})", budget.limit.source, size_text(budget.limit.bytes));
}

std::string held_text(const BudgetFigures& budget) {
  std::string lines;
  for (const auto& [name, bytes] : budget.lines)
    lines += fmt::format("{}{} {}", lines.empty() ? "" : ", ", name, size_text(bytes));
  return fmt::format("{} of {}{}: {}",
                     size_text(budget.changes.empty() ? budget.peak_bytes : budget.used_bytes),
                     size_text(budget.capacity_bytes), origin_text(budget), lines);
}

std::string changes_text(const BudgetFigures& budget) {
  std::string changes;
  for (const BudgetChangeFigures& change : budget.changes) {
    changes += fmt::format("{}{} from step {}", changes.empty() ? "" : ", ", size_text(change.capacity_bytes),
                           change.step);
  }
  return fmt::format("{}; at most {} were held", changes, size_text(budget.peak_bytes));
}

// Returns the bytes of a token over a link, and their share of the token's time.
std::string each_token_text(const LinkFigures& link, double step_ms) {
  const double busy_ms = link.busy_ms();
  if (busy_ms <= 0 || step_ms <= 0) return "";
  const double bytes = link.each<&LinkCounters::bytes>(link);
  return fmt::format("; {} a token in {:.3g} ms ({}), {:.0f} % of its time", format_bytes(bytes), busy_ms,
                     format_rate(bytes * 1e3 / busy_ms), 100 * busy_ms / step_ms);
}

ReportLines lines_of(const std::string& name, const MemoryTierFigures& tier, bool only_tier) {
  ReportLines lines = {{name, held_text(tier.budget)}};
  if (!tier.budget.changes.empty()) lines.emplace_back("", changes_text(tier.budget));
  if (const NeuronFigures& neurons = tier.neurons; !only_tier) {
    lines.emplace_back("", fmt::format("{} hits, {} fetched ahead in time, {} misses, {} evicted",
                                       neurons.hits, neurons.staged, neurons.misses, neurons.evictions));
  }
  if (tier.moves) {
    lines.emplace_back("",
                       fmt::format("{} read from registered memory, {} gathered into pinned blocks",
                                   size_text(tier.moves->read_in_place), size_text(tier.moves->gathered)));
  }
  if (tier.runs) {
    lines.emplace_back("",
                       fmt::format("{} runs, {:.0f} % of them launched as one graph", tier.runs->runs,
                                   per(100.0 * static_cast<double>(tier.runs->captured), tier.runs->runs)));
  }
  if (tier.direct) lines.emplace_back("", direct_text(*tier.direct));
  return lines;
}

}  // namespace

std::vector<TierFigures> tier_figures(const Runtime& runtime) {
  const TierTable& tiers = runtime.plan().tiers;
  std::vector<TierFigures> list;
  for (size_t i = 0; i < tiers.memories.size(); ++i) {
    const TierConfig& config = tiers.memories[i].config;
    list.push_back({config.name, config.agent(), memory_figures(runtime, i)});
  }
  list.push_back({tiers.store.config.name, tiers.store.config.agent(), {}});
  return list;
}

std::vector<LinkFigures> link_figures(Runtime& runtime, const RunResult& result) {
  std::vector<LinkFigures> list;
  const std::vector<TierLink> all = runtime.links();
  const std::vector<TierLink>&before = result.links_before, &warm = result.links_warm;
  const uint64_t later = result.decode_read_bytes.size();
  for (size_t l = 0; l < all.size(); ++l) {
    const LinkCounters& now = all[l].counters;
    LinkFigures& link = list.emplace_back();
    link.link = all[l];
    link.steps = runtime.engine().decode_times().steps;
    if (l < before.size()) link.decode = figures_between(before[l].counters, now);
    if (l < warm.size() && later > kWarmUpSteps)
      link.settled_bytes = per(now.bytes - warm[l].counters.bytes, later - kWarmUpSteps);
  }
  return list;
}

ReportLines tier_lines(const std::vector<TierFigures>& tiers, const std::vector<LinkFigures>& links,
                       double step_ms) {
  ReportLines lines;
  for (const TierFigures& tier : tiers) {
    if (tier.memory) append(lines, lines_of(tier.name, *tier.memory, tiers.size() == 2));
  }
  if (links.size() < 2) return lines;
  for (const LinkFigures& each : links) {
    const auto& [from, to, link] = each.link;
    lines.emplace_back(
        "link",
        fmt::format("{} to {}: {} ({} of weights, {} of padding) in {} messages of {} neurons{}", from, to,
                    size_text(link.bytes), size_text(link.payload_bytes), size_text(link.padding_bytes()),
                    link.messages, link.neurons, each_token_text(each, step_ms)));
  }
  return lines;
}

ReportLines budget_lines(const std::vector<TierFigures>& tiers) {
  ReportLines lines;
  for (const TierFigures& tier : tiers) {
    if (!tier.memory) continue;
    const BudgetFigures& budget = tier.memory->budget;
    lines.emplace_back(
        tier.name, fmt::format("budget {}{}; the least that would do is {}", size_text(budget.capacity_bytes),
                               origin_text(budget), size_text(budget.least_bytes)));
    for (const auto& [name, bytes] : budget.lines)
      lines.emplace_back("", fmt::format("{:<18} {}", name, size_text(bytes)));
    if (tier.memory->direct) lines.emplace_back("", "reads directly what no tier below holds");
  }
  return lines;
}

}  // namespace tierd
