#include "tools/tierd/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/model/text/chat_template.h"
#include "core/run/runtime.h"
#include "core/run/runtime_names.h"
#include "core/store/cache_folder.h"
#include "core/system/cores.h"
#include "tools/tierd/encoding_report.h"
#include "tools/tierd/known_loss.h"
#include "tools/tierd/machine_rates.h"
#include "tools/tierd/recoding_report.h"
#include "tools/tierd/report.h"
#include "tools/tierd/report_numbers.h"
#include "tools/tierd/tier_report.h"
#include "tools/tierd/token_bytes.h"

namespace tierd {
namespace {

using nlohmann::json;

Result<json> store_json(const RunPlan& plan) {
  json store = {{"path", plan.store.directory()}, {"made", plan.store.made()}};
  store["bytes"] = plan.store.manifest().data_bytes;
  if (plan.store.made()) return store;
  TIERD_ASSIGN(const DiskRoom room, disk_room(plan.store));
  store["to_write_bytes"] = room.needed_bytes;
  store["disk_left_bytes"] = room.left_bytes;
  return store;
}

// Returns shares of all weights: those of the feed-forward networks, those that memories hold, and those of
// the networks that memories hold, as LLM in a flash (section 4.1) counts them.
json weights_json(const Runtime& runtime) {
  const Manifest& manifest = runtime.plan().store.manifest();
  const auto all = static_cast<double>(manifest.tensor_bytes);
  double networks = 0, resident = all;
  for (const StoredSite& site : manifest.sites) {
    if (site.edition_of != kNoSite || site.alias_of != kNoSite) continue;
    const auto bytes = static_cast<double>(site.tensor_bytes());
    resident -= bytes;
    if (site.group == OpGroup::up || site.group == OpGroup::down || site.group == OpGroup::ffn ||
        site.group == OpGroup::experts)
      networks += bytes;
  }
  // Weights that belong to no site (norms, biases) are always in memory.
  for (size_t tier = 0; tier < runtime.plan().tiers.memories.size(); ++tier) {
    for (const Budget::Line& line : runtime.budget(tier).lines())
      resident += line.name == kResident ? static_cast<double>(line.bytes) : 0;
  }
  resident = std::min(resident, all);
  const double in_networks = std::max(0.0, resident - (all - networks));
  return {{"networks", networks / all},
          {"in_memory", resident / all},
          {"networks_in_memory", networks > 0 ? in_networks / networks : 0.0}};
}

json number_or_null(std::optional<double> value) {
  return value ? json(*value) : json(nullptr);
}

// Returns the links with all links between the same two tiers added up, as the report has them.
json links_json(const TierTable& tiers, const TokenBytes& bytes) {
  json links = json::array();
  for (size_t l = 0; l < bytes.links.size(); ++l) {
    const Link& link = tiers.topology.links[l];
    const std::string& from = tiers.tier_of(link.from).config.name;
    const std::string& to = tiers.tier_of(link.to).config.name;
    auto found =
        std::ranges::find_if(links, [&](const json& of) { return of["from"] == from && of["to"] == to; });
    if (found == links.end()) {
      links.push_back({{"from", from}, {"to", to}, {"bytes_per_token", 0.0}});
      found = std::prev(links.end());
    }
    json& sum = (*found)["bytes_per_token"];
    sum = bytes.links[l] && !sum.is_null() ? json(sum.get<double>() + *bytes.links[l]) : json(nullptr);
  }
  return links;
}

// Seconds that a token takes of each resource that could bound it.
struct TokenTimes {
  double memory = 0;
  double flash = 0;
  double link = 0;

  double longest() const { return std::max({memory, flash, link}); }
  const char* bound() const {
    return longest() == memory ? "memory" : longest() == flash ? "flash" : "a link";
  }
};

// The processor reads and writes bytes that move between memories, unless a link moves them. Of bytes that
// are unknown, all count as not resident.
TokenTimes times_of(const Runtime& runtime, const PlannedTraffic& traffic, const TokenBytes& bytes,
                    const MachineDescription& machine) {
  TokenTimes times;
  double moved = 0;
  const Topology& topology = runtime.plan().tiers.topology;
  std::vector<double> into(topology.memories.size() + 1);  // [memories] seconds, the store's too
  for (size_t l = 0; l < traffic.link_bytes.size(); ++l) {
    const double rate = runtime.link_rate(l);
    const double over = bytes.links[l].value_or(static_cast<double>(traffic.link_bytes[l]));
    if (rate > 0) {
      // Moved bytes and directly read bytes cross the same bus.
      into[topology.links[l].to] += over / rate;
    } else if (topology.links[l].from != kStore) {
      moved += 2 * over;
    }
  }
  times.link = std::ranges::max(into);
  times.memory = (static_cast<double>(traffic.computed_bytes) + moved) / machine.processor.memory_rate;
  times.flash = bytes.flash.value_or(static_cast<double>(traffic.streamed_bytes)) /
                machine.disk.reads.points().back().bytes_per_second;
  return times;
}

// Returns tokens a second, or the reason why the number is unknown.
json expected_json(const Runtime& runtime, const PlayedBytes& foretold, const PlannedTraffic& traffic,
                   const MachineRates& rates) {
  const auto& [played, bytes] = foretold;
  json expected = {{"rates_from", rates.from},
                   {"memory_bytes_per_second", rates.machine.processor.memory_rate}};
  const TokenTimes times = times_of(runtime, traffic, bytes, rates.machine);
  expected["flash_bytes_per_token"] = number_or_null(bytes.flash);
  expected["resident_bytes_per_token"] =
      bytes.flash ? json(std::max(0.0, static_cast<double>(traffic.computed_bytes) - *bytes.flash))
                  : json(nullptr);
  expected["bytes_unknown"] = bytes.why_unknown.empty() ? json(nullptr) : json(bytes.why_unknown);
  expected["bound_by"] = times.bound();
  expected["flash_bytes_per_second"] = nullptr;
  expected["tokens_per_second"] = nullptr;
  if (!rates.disk_unknown)
    expected["flash_bytes_per_second"] = rates.machine.disk.reads.points().back().bytes_per_second;
  if (rates.disk_unknown && bytes.flash != 0.0) {
    expected["unknown"] = *rates.disk_unknown;
  } else if (played.ok()) {
    expected["tokens_per_second"] = 1 / std::max(played->step_ns * 1e-9, times.link);
  } else if (played.code() != Code::unsupported) {
    expected["unknown"] = played.error().line();
  } else if (traffic.streamed_bytes == 0) {
    expected["tokens_per_second"] = 1 / times.longest();
  } else {
    expected["unknown"] = "what a token needs depends on the text";
    expected["least_tokens_per_second"] = 1 / times.longest();
  }
  return expected;
}

std::string store_text(const json& store) {
  if (store["made"].get<bool>())
    return fmt::format("{}, {}", store["path"].get<std::string>(), size_text(store["bytes"]));
  return fmt::format("{}, not made yet: takes {} on a disk that has {} left",
                     store["path"].get<std::string>(), size_text(store["to_write_bytes"]),
                     size_text(store["disk_left_bytes"]));
}

std::string expected_text(const json& expected) {
  if (!expected["tokens_per_second"].is_null()) {
    return fmt::format("{:.3g} tokens/s, bound by {}", expected["tokens_per_second"].get<double>(),
                       expected["bound_by"].get<std::string>());
  }
  std::string text = "unknown: " + expected["unknown"].get<std::string>();
  if (expected.contains("least_tokens_per_second")) {
    text += fmt::format("; {:.3g} tokens/s where nothing of it is in memory",
                        expected["least_tokens_per_second"].get<double>());
  }
  return text;
}

std::string rates_text(const json& expected) {
  const json& flash = expected["flash_bytes_per_second"];
  std::string text =
      fmt::format("DRAM {}, flash {}; {}", format_rate(expected["memory_bytes_per_second"].get<double>()),
                  flash.is_null() ? "unknown" : format_rate(flash.get<double>()),
                  expected["rates_from"].get<std::string>());
  if (expected["rates_from"] == kMeasuredJustNow) text += " (tier-calibrate measures once, and better)";
  return text;
}

}  // namespace

Result<json> check_json(RunPlan plan, const RuntimeOptions& options, const Vocab& vocab) {
  TIERD_ASSIGN(const MachineRates rates,
               machine_rates(plan, plan.config.threads != 0 ? plan.config.threads : available_cores()));
  TIERD_ASSIGN(json store, store_json(plan));
  TIERD_ASSIGN(json encodings, encodings_json(plan));
  TIERD_ASSIGN(json recoded, recoding_json(plan));
  RuntimeOptions played = options;
  played.quiet = true;
  played.play_on = machine_to_play_on(plan, rates);
  TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create(std::move(plan), played));
  json check = configuration_json(*runtime);
  check["store"] = std::move(store);
  check["encoded_anew"] = std::move(encodings);
  check["recoded"] = std::move(recoded);
  check["pieces"] = vocab.pieces.size();
  const auto chat = ChatTemplate::of(vocab);
  check["chat_template"] = chat.ok() ? json(chat->name()) : json(nullptr);
  check["tiers"] = tiers_json(*runtime);
  check["weights"] = weights_json(*runtime);
  TIERD_ASSIGN(const PlannedTraffic traffic, runtime->planned_traffic());
  TIERD_ASSIGN(const PlayedBytes foretold, foretell_bytes(*runtime, played, traffic, rates));
  check["links"] = links_json(runtime->plan().tiers, foretold.bytes);
  check["expected"] = expected_json(*runtime, foretold, traffic, rates);
  return check;
}

std::string check_text(const json& c) {
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", label, value);
  };
  text += fmt::format("{}, {} of weights; context {}\n", c["model"].get<std::string>(),
                      size_text(c["tensor_bytes"]), c["context"].get<int>());
  line("store", store_text(c["store"]));
  if (!c["encoded_anew"].empty()) line("encoded anew", encodings_text(c["encoded_anew"]));
  for (const auto& [label, value] : recoding_lines(c["recoded"])) line(label, value);
  line("text", fmt::format("{} tokens; chats {}", c["pieces"].get<uint64_t>(),
                           c["chat_template"].is_null()
                               ? "need --chat-template NAME"
                               : fmt::format("as {}", c["chat_template"].get<std::string>())));
  for (const auto& [label, value] : budget_lines(c)) line(label, value);
  const auto percent = [&](const char* key) { return 100 * c["weights"][key].get<double>(); };
  line("weights", fmt::format("{:.1f} % in networks; memory has {:.1f} % of all, of the networks {:.1f} %",
                              percent("networks"), percent("in_memory"), percent("networks_in_memory")));
  const json& expected = c["expected"];
  const auto known = [](const json& bytes) { return bytes.is_null() ? "unknown bytes" : size_text(bytes); };
  line("per token",
       expected["flash_bytes_per_token"].is_null()
           ? "unknown: " + expected["bytes_unknown"].get<std::string>()
           : fmt::format("{} resident, {} from flash", size_text(expected["resident_bytes_per_token"]),
                         size_text(expected["flash_bytes_per_token"])));
  if (c["links"].size() > 1) {
    for (const json& link : c["links"]) {
      line("", fmt::format("{} from {} to {}", known(link["bytes_per_token"]),
                           link["from"].get<std::string>(), link["to"].get<std::string>()));
    }
  }
  if (const std::string loss = loss_text(c["loss"]); !loss.empty()) line("loss", loss);
  line("rates", rates_text(expected));
  line("expected", expected_text(expected));
  return text;
}

}  // namespace tierd
