#include "tools/tierd/check.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "core/model/text/chat_template.h"
#include "core/run/runtime.h"
#include "core/run/runtime_names.h"
#include "core/store/cache_folder.h"
#include "core/system/cores.h"
#include "tools/tierd/machine_rates.h"
#include "tools/tierd/token_bytes.h"

namespace tierd {
namespace {

Result<StoreFigures> store_figures(const RunPlan& plan) {
  StoreFigures store{plan.store.directory(), plan.store.made(), plan.store.manifest().data_bytes};
  if (store.made) return store;
  TIERD_ASSIGN(const DiskRoom room, disk_room(plan.store));
  store.to_write_bytes = room.needed_bytes;
  store.disk_left_bytes = room.left_bytes;
  return store;
}

WeightFigures weight_figures(const Runtime& runtime) {
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
  return {networks / all, resident / all, networks > 0 ? in_networks / networks : 0.0};
}

// Returns the links with all links between the same two tiers added up, as the report has them.
std::vector<TokenLinkFigures> token_links(const TierTable& tiers, const TokenBytes& bytes) {
  std::vector<TokenLinkFigures> links;
  for (size_t l = 0; l < bytes.links.size(); ++l) {
    const Link& link = tiers.topology.links[l];
    const std::string& from = tiers.tier_of(link.from).config.name;
    const std::string& to = tiers.tier_of(link.to).config.name;
    auto found = std::ranges::find_if(
        links, [&](const TokenLinkFigures& of) { return of.from == from && of.to == to; });
    if (found == links.end()) found = links.insert(links.end(), {from, to, 0.0});
    std::optional<double>& sum = found->bytes_per_token;
    sum = sum && bytes.links[l] ? std::optional(*sum + *bytes.links[l]) : std::nullopt;
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

// The processor reads and writes bytes that move between memories, unless a link moves them. Unknown
// bytes count as not resident.
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

ExpectedFigures expected_figures(const Runtime& runtime, const PlayedBytes& foretold,
                                 const PlannedTraffic& traffic, const MachineRates& rates) {
  const auto& [played, bytes] = foretold;
  const TokenTimes times = times_of(runtime, traffic, bytes, rates.machine);
  ExpectedFigures expected;
  expected.rates_from = rates.from;
  expected.memory_bytes_per_second = rates.machine.processor.memory_rate;
  expected.flash_bytes_per_token = bytes.flash;
  if (bytes.flash)
    expected.resident_bytes_per_token =
        std::max(0.0, static_cast<double>(traffic.computed_bytes) - *bytes.flash);
  expected.bytes_unknown = bytes.why_unknown;
  expected.bound_by = times.bound();
  if (!rates.disk_unknown)
    expected.flash_bytes_per_second = rates.machine.disk.reads.points().back().bytes_per_second;
  if (rates.disk_unknown && bytes.flash != 0.0) {
    expected.unknown = *rates.disk_unknown;
  } else if (played.ok()) {
    expected.tokens_per_second = 1 / std::max(played->step_ns * 1e-9, times.link);
  } else if (played.code() != Code::unsupported) {
    expected.unknown = played.error().line();
  } else if (traffic.streamed_bytes == 0) {
    expected.tokens_per_second = 1 / times.longest();
  } else {
    expected.unknown = "the bytes of a token depend on the text";
    expected.least_tokens_per_second = 1 / times.longest();
  }
  return expected;
}

std::string store_text(const StoreFigures& store) {
  if (store.made) return fmt::format("{}, {}", store.path, size_text(store.bytes));
  return fmt::format("{}, not made yet: takes {} on a disk that has {} left", store.path,
                     size_text(*store.to_write_bytes), size_text(*store.disk_left_bytes));
}

std::string expected_text(const ExpectedFigures& expected) {
  if (expected.tokens_per_second)
    return fmt::format("{:.3g} tokens/s, bound by {}", *expected.tokens_per_second, expected.bound_by);
  std::string text = "unknown: " + expected.unknown.value_or("");
  if (expected.least_tokens_per_second) {
    text +=
        fmt::format("; {:.3g} tokens/s where nothing of it is in memory", *expected.least_tokens_per_second);
  }
  return text;
}

std::string rates_text(const ExpectedFigures& expected) {
  const auto& flash = expected.flash_bytes_per_second;
  std::string text = fmt::format("DRAM {}, flash {}; {}", format_rate(expected.memory_bytes_per_second),
                                 flash ? format_rate(*flash) : "unknown", expected.rates_from);
  if (expected.rates_from == kMeasuredJustNow) text += " (tier-calibrate measures once, and better)";
  return text;
}

// Returns the bytes of a token, in all and over each of several links.
ReportLines byte_lines(const CheckFigures& check) {
  const ExpectedFigures& expected = check.expected;
  ReportLines lines = {{"per token", "unknown: " + expected.bytes_unknown}};
  if (expected.flash_bytes_per_token) {
    lines.front().second =
        fmt::format("{} resident, {} from flash", size_text(*expected.resident_bytes_per_token),
                    size_text(*expected.flash_bytes_per_token));
  }
  for (const TokenLinkFigures& link : check.links) {
    if (check.links.size() < 2) continue;
    const auto& bytes = link.bytes_per_token;
    lines.emplace_back(
        "", fmt::format("{} from {} to {}", bytes ? size_text(*bytes) : "unknown bytes", link.from, link.to));
  }
  return lines;
}

}  // namespace

Result<CheckFigures> check_figures(RunPlan plan, const RuntimeOptions& options, const Vocab& vocab) {
  TIERD_ASSIGN(const MachineRates rates,
               machine_rates(plan, plan.config.threads != 0 ? plan.config.threads : available_cores()));
  CheckFigures check;
  TIERD_ASSIGN(check.store, store_figures(plan));
  TIERD_ASSIGN(check.encoded_anew, encoding_figures(plan));
  TIERD_ASSIGN(check.recoded, recoding_figures(plan));
  RuntimeOptions played = options;
  played.quiet = true;
  played.play_on = machine_to_play_on(plan, rates);
  TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, Runtime::create(std::move(plan), played));
  check.configuration = configuration_figures(*runtime);
  check.pieces = vocab.pieces.size();
  if (ChatTemplate::of(vocab).ok()) check.chat_template = "own";
  check.tiers = tier_figures(*runtime);
  check.weights = weight_figures(*runtime);
  TIERD_ASSIGN(const PlannedTraffic traffic, runtime->planned_traffic());
  TIERD_ASSIGN(const PlayedBytes foretold, foretell_bytes(*runtime, played, traffic, rates));
  check.links = token_links(runtime->plan().tiers, foretold.bytes);
  check.expected = expected_figures(*runtime, foretold, traffic, rates);
  return check;
}

std::string check_text(const CheckFigures& check) {
  const ConfigurationFigures& configuration = check.configuration;
  const WeightFigures& weights = check.weights;
  ReportLines lines = {{"store", store_text(check.store)}};
  if (!check.encoded_anew.empty()) lines.emplace_back("encoded anew", encodings_text(check.encoded_anew));
  append(lines, recoding_lines(check.recoded));
  lines.emplace_back("text", fmt::format("{} tokens; chats {}", check.pieces,
                                         check.chat_template.empty() ? "need --chat-template NAME"
                                                                     : "by the model's own template"));
  append(lines, budget_lines(check.tiers));
  lines.emplace_back(
      "weights",
      fmt::format("{:.1f} % in networks; memory has {:.1f} % of all, of the networks {:.1f} %",
                  100 * weights.networks, 100 * weights.in_memory, 100 * weights.networks_in_memory));
  append(lines, byte_lines(check));
  if (check.loss) lines.emplace_back("loss", loss_text(*check.loss));
  lines.emplace_back("rates", rates_text(check.expected));
  lines.emplace_back("expected", expected_text(check.expected));
  return fmt::format("{}, {} of weights; context {}\n", configuration.model,
                     size_text(configuration.tensor_bytes), configuration.context) +
         text_of(lines);
}

}  // namespace tierd
