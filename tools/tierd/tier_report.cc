#include "tools/tierd/tier_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/units.h"
#include "tools/tierd/report_numbers.h"

namespace tierd {
namespace {

using nlohmann::json;

json budget_json(const Runtime& runtime, size_t tier) {
  const Budget& budget = runtime.budget(tier);
  const TierMemory& memory = runtime.plan().memory.tiers[tier];
  const MemoryLimit& most = runtime.plan().memory.most;
  json lines = json::object();
  for (const Budget::Line& line : budget.lines()) lines[line.name] = line.bytes;
  json changes = json::array();
  for (const Runtime::BudgetChange& change : runtime.budget_changes()) {
    if (change.tier != tier) continue;
    changes.push_back({{"step", change.step},
                       {"capacity_bytes", change.to},
                       {"resident_bytes", change.resident},
                       {"raised_to_least", change.raised_to_least}});
  }
  return {{"capacity_bytes", budget.capacity()},
          {"peak_bytes", budget.peak()},
          {"used_bytes", budget.used()},
          {"changes", changes},
          {"least_bytes", memory.least},
          {"raised_to_least", memory.raised_to_least},
          {"chosen", memory.automatic},
          {"limit", {{"source", most.source}, {"bytes", most.left_bytes}}},
          {"lines", lines}};
}

json neurons_json(const MemoryCounters& counters) {
  const UseCounters asked = counters.asked();
  return {{"hits", asked.hits},
          {"staged", asked.staged},
          {"misses", asked.misses},
          {"evictions", counters.evictions},
          {"wasted", counters.wasted},
          {"prefetch_failed", counters.prefetch_failed},
          {"retries", counters.retries},
          {"resident_bytes", asked.resident_bytes},
          {"streamed_bytes", asked.streamed_bytes}};
}

// Returns NULL where the tier's agents do not read the store themselves.
json direct_json(const Runtime& runtime, size_t tier) {
  const auto direct = runtime.direct_reads(tier);
  if (!direct) return nullptr;
  return {{"way", direct->way.empty() ? "described" : direct->way},
          {"why", direct->way_why},
          {"bytes", direct->counts.bytes},
          {"verified_bytes", direct->counts.verified_bytes}};
}

// Returns "staged through pinned memory (why); 1.2 GB, all verified".
std::string direct_text(const json& direct) {
  const auto why = direct["why"].get<std::string>();
  const auto bytes = direct["bytes"].get<uint64_t>();
  const auto verified = direct["verified_bytes"].get<uint64_t>();
  return fmt::format(
      "reads of flash are {}{}; {}, {}", direct["way"].get<std::string>(),
      why.empty() ? "" : fmt::format(" ({})", why), size_text(bytes),
      verified == bytes
          ? "all verified"
          : fmt::format("{} verified when they were loaded first, the rest unverified", size_text(verified)));
}

// Returns how the capacity was chosen, where it was not given: the least, or a limit of memory.
std::string origin_text(const json& budget) {
  if (budget["raised_to_least"].get<bool>()) return " (raised to the least)";
  if (!budget["chosen"].get<bool>()) return "";
  const json& limit = budget["limit"];
  return fmt::format(" (auto: {} leaves {})", limit["source"].get<std::string>(), size_text(limit["bytes"]));
}

std::string held_text(const json& budget) {
  std::string lines;
  for (const auto& [name, bytes] : budget["lines"].items())
    lines += fmt::format("{}{} {}", lines.empty() ? "" : ", ", name, size_text(bytes));
  return fmt::format("{} of {}{}: {}",
                     size_text(budget[budget["changes"].empty() ? "peak_bytes" : "used_bytes"]),
                     size_text(budget["capacity_bytes"]), origin_text(budget), lines);
}

std::string changes_text(const json& budget) {
  std::string changes;
  for (const json& change : budget["changes"]) {
    changes += fmt::format("{}{} from step {}", changes.empty() ? "" : ", ",
                           size_text(change["capacity_bytes"]), change["step"].get<uint64_t>());
  }
  return fmt::format("{}; at most {} were held", changes, size_text(budget["peak_bytes"]));
}

// Returns the bytes of a token over a link, and their share of the token's time.
std::string each_token_text(const json& link, const json& decode) {
  const auto busy_ms = link["decode_busy_ms"].get<double>();
  const auto step_ms = decode["step_ms"].get<double>();
  if (busy_ms <= 0 || step_ms <= 0) return "";
  const auto bytes = link["decode_bytes"].get<double>();
  return fmt::format("; {} a token in {:.3g} ms ({}), {:.0f} % of its time", format_bytes(bytes), busy_ms,
                     format_rate(bytes * 1e3 / busy_ms), 100 * busy_ms / step_ms);
}

}  // namespace

json tiers_json(const Runtime& runtime) {
  const TierTable& tiers = runtime.plan().tiers;
  json list = json::array();
  for (size_t i = 0; i < tiers.memories.size(); ++i) {
    const TierConfig& config = tiers.memories[i].config;
    list.push_back({{"tier", config.name},
                    {"kind", config.agent()},
                    {"count", config.count},
                    {"over", config.over.empty() ? tiers.store.config.name : config.over},
                    {"computes", config.compute},
                    {"direct", direct_json(runtime, i)},
                    {"budget", budget_json(runtime, i)},
                    {"neurons", neurons_json(runtime.counters(i))}});
    const MoveCounts moves = runtime.move_counts(i);
    if (moves.read_in_place + moves.gathered != 0)
      list.back()["moves"] = {{"read_in_place_bytes", moves.read_in_place},
                              {"gathered_bytes", moves.gathered}};
    const RunCounts runs = runtime.run_counts(i);
    if (runs.runs != 0) list.back()["runs"] = {{"all", runs.runs}, {"captured", runs.captured}};
  }
  list.push_back({{"tier", tiers.store.config.name}, {"kind", tiers.store.config.agent()}});
  return list;
}

json links_json(Runtime& runtime, const RunResult& result) {
  json list = json::array();
  const std::vector<TierLink> all = runtime.links();
  const std::vector<TierLink>&before = result.links_before, &warm = result.links_warm;
  const uint64_t steps = runtime.engine().decode_times().steps, later = result.decode_read_bytes.size();
  const auto each = [&](uint64_t bytes) { return per(static_cast<double>(bytes), steps); };
  const auto settled = [&](size_t l) {
    if (l >= warm.size() || later <= kWarmUpSteps) return json(nullptr);
    return json(
        per(static_cast<double>(all[l].counters.bytes - warm[l].counters.bytes), later - kWarmUpSteps));
  };
  for (size_t l = 0; l < all.size(); ++l) {
    const LinkCounters& link = all[l].counters;
    const LinkCounters first = l < before.size() ? before[l].counters : link;
    list.push_back({{"from", all[l].from},
                    {"to", all[l].to},
                    {"messages", link.messages},
                    {"neurons", link.neurons},
                    {"bytes", link.bytes},
                    {"payload_bytes", link.payload_bytes},
                    {"padding_bytes", link.padding_bytes()},
                    {"decode_bytes", each(link.bytes - first.bytes)},
                    {"decode_payload_bytes", each(link.payload_bytes - first.payload_bytes)},
                    {"decode_padding_bytes", each(link.padding_bytes() - first.padding_bytes())},
                    {"decode_settled_bytes", settled(l)},
                    {"decode_busy_ms", per(static_cast<double>(link.busy_ns - first.busy_ns) * kMs, steps)}});
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> tier_lines(const json& report) {
  std::vector<std::pair<std::string, std::string>> lines;
  const json& tiers = report["tiers"];
  for (const json& tier : tiers) {
    if (!tier.contains("budget")) continue;
    const json& budget = tier["budget"];
    const auto name = tier["tier"].get<std::string>();
    lines.emplace_back(name, held_text(budget));
    if (!budget["changes"].empty()) lines.emplace_back("", changes_text(budget));
    const json& neurons = tier["neurons"];
    if (tiers.size() > 2) {
      lines.emplace_back(
          "", fmt::format("{} hits, {} fetched ahead in time, {} misses, {} evicted",
                          neurons["hits"].get<uint64_t>(), neurons["staged"].get<uint64_t>(),
                          neurons["misses"].get<uint64_t>(), neurons["evictions"].get<uint64_t>()));
    }
    if (tier.contains("moves")) {
      lines.emplace_back("", fmt::format("{} read from registered memory, {} gathered into pinned blocks",
                                         size_text(tier["moves"]["read_in_place_bytes"]),
                                         size_text(tier["moves"]["gathered_bytes"])));
    }
    if (tier.contains("runs")) {
      const auto all = tier["runs"]["all"].get<uint64_t>(),
                 captured = tier["runs"]["captured"].get<uint64_t>();
      lines.emplace_back("", fmt::format("{} runs, {:.0f} % of them launched as one graph", all,
                                         100.0 * static_cast<double>(captured) / static_cast<double>(all)));
    }
    if (!tier["direct"].is_null()) lines.emplace_back("", direct_text(tier["direct"]));
  }
  if (report["links"].size() > 1) {
    for (const json& link : report["links"]) {
      lines.emplace_back(
          "link", fmt::format("{} to {}: {} ({} of weights, {} of padding) in {} messages of {} neurons{}",
                              link["from"].get<std::string>(), link["to"].get<std::string>(),
                              size_text(link["bytes"]), size_text(link["payload_bytes"]),
                              size_text(link["padding_bytes"]), link["messages"].get<uint64_t>(),
                              link["neurons"].get<uint64_t>(), each_token_text(link, report["decode"])));
    }
  }
  return lines;
}

std::vector<std::pair<std::string, std::string>> budget_lines(const json& check) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const json& tier : check["tiers"]) {
    if (!tier.contains("budget")) continue;
    const json& budget = tier["budget"];
    lines.emplace_back(
        tier["tier"].get<std::string>(),
        fmt::format("budget {}{}; the least that would do is {}", size_text(budget["capacity_bytes"]),
                    origin_text(budget), size_text(budget["least_bytes"])));
    for (const auto& [name, bytes] : budget["lines"].items())
      lines.emplace_back("", fmt::format("{:<18} {}", name, size_text(bytes)));
    if (!tier["direct"].is_null()) lines.emplace_back("", "reads directly what no tier below holds");
  }
  return lines;
}

}  // namespace tierd
