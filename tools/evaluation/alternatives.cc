#include "tools/evaluation/alternatives.h"

#include <sstream>
#include <utility>

#include "core/engine/memory_plan.h"

namespace tierd {
namespace {

uint64_t bytes_of_all(const TraceHeader& header) {
  uint64_t bytes = 0;
  for (const Edition& edition : header.sites.editions) {
    if (edition.made_of == kNoEdition) bytes += uint64_t{edition.n} * edition.slot_bytes;
  }
  return bytes;
}

Result<uint64_t> parse_arena(const TraceHeader& header, const std::string& text) {
  TIERD_ASSIGN(const Capacity capacity, parse_capacity(text, "arena"));
  switch (capacity.kind) {
    case Capacity::Kind::automatic:
      return Error{Code::invalid_argument, "arena",
                   "'auto' is for a machine; write a size, such as 50% or all"};
    case Capacity::Kind::all:
      return bytes_of_all(header);
    case Capacity::Kind::share:
      return static_cast<uint64_t>(capacity.share * static_cast<double>(bytes_of_all(header)));
    case Capacity::Kind::bytes:
      break;
  }
  return capacity.bytes;
}

// Applies the settings of `named` to the recorded strategy.
void put_over(StrategyConfig& recorded, StrategyConfig named, bool renamed) {
  if (renamed && named.name != recorded.name) {
    recorded = std::move(named);
    return;
  }
  if (!named.tensors.empty()) recorded.tensors = named.tensors;
  for (Setting& setting : named.settings) {
    std::erase_if(recorded.settings, [&](const Setting& old) { return old.key == setting.key; });
    recorded.settings.push_back(std::move(setting));
  }
}

}  // namespace

Result<std::vector<Alternative>> parse_alternatives(const TraceHeader& header,
                                                    const std::vector<std::string>& words) {
  const Alternative recorded = {"as recorded", header.predictor, header.quantizer,
                                header.cache,  header.balancer,  header.arena_bytes()};
  std::vector<Alternative> all = {recorded};
  for (const std::string& word : words) {
    Alternative& alternative = all.emplace_back(recorded);
    alternative.name = word;
    std::vector<std::string> overrides;
    std::stringstream parts(word);
    for (std::string part; std::getline(parts, part, ',');) {
      if (part.starts_with("arena=")) {
        TIERD_ASSIGN(alternative.arena_bytes, parse_arena(header, part.substr(6)));
        continue;
      }
      const std::string table = part.substr(0, part.find('.'));
      if (table != "predictor" && table != "quantizer" && table != "cache" && table != "balancer") {
        return Error{
            Code::invalid_argument, part,
            "a replay can change arena and the tables predictor, quantizer, cache, balancer; write for "
            "example cache.name=lfu"};
      }
      overrides.push_back(part);
    }
    TIERD_ASSIGN(Config config, load_config("", overrides));
    const auto renamed = [&](const std::string& kind) {
      return std::any_of(overrides.begin(), overrides.end(),
                         [&](const std::string& o) { return o.starts_with(kind + ".name="); });
    };
    put_over(alternative.predictor, std::move(config.predictor), renamed("predictor"));
    put_over(alternative.quantizer, std::move(config.quantizer), renamed("quantizer"));
    alternative.one_cache = renamed("cache");
    put_over(alternative.cache, std::move(config.cache), alternative.one_cache);
    put_over(alternative.balancer, std::move(config.balancer), renamed("balancer"));
  }
  return all;
}

}  // namespace tierd
