#include "tools/lab/train/rank_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace tierd {
namespace {

Error refuse(std::string detail) {
  return {Code::invalid_argument, "--rank", std::move(detail)};
}

std::optional<uint32_t> parse_number(std::string_view text) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, status] = std::from_chars(text.data(), end, number);
  if (status != std::errc() || at != end) return std::nullopt;
  return number;
}

Result<uint32_t> parse_value(std::string_view text, const ModelConfig& config) {
  constexpr std::string_view kShare = "d/";
  if (text == "none") return 0U;
  const bool share = text.starts_with(kShare);
  const auto number = parse_number(share ? text.substr(kShare.size()) : text);
  if (!number || *number == 0) {
    return refuse(fmt::format(
        "'{}' is not a rank; expected one such as 128, a share of the width such as d/4, or none", text));
  }
  const uint32_t rank = share ? config.d_model / *number : *number;
  const uint32_t most = std::min(config.d_model, config.d_ff);
  if (rank == 0 || rank > most) {
    return refuse(fmt::format("'{}' is a rank of {}, expected 1 to {}", text, rank, most));
  }
  return rank;
}

struct LayerRun {
  uint32_t first = 0;
  uint32_t last = 0;  // included
};

Result<LayerRun> parse_layers(std::string_view text, uint32_t n_layers) {
  const size_t dash = text.find('-');
  const auto first = parse_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_number(text.substr(dash + 1));
  if (!first || !last || *first > *last) {
    return refuse(fmt::format("'{}' is not a layer; expected one such as 3, or a range such as 0-27", text));
  }
  if (*last >= n_layers) {
    return refuse(fmt::format("there is no layer {}; the last one is {}", *last, n_layers - 1));
  }
  return LayerRun{*first, *last};
}

}  // namespace

Result<std::vector<uint32_t>> parse_ranks(std::string_view text, const ModelConfig& config) {
  if (text.find('=') == std::string_view::npos) {
    TIERD_ASSIGN(const uint32_t rank, parse_value(text, config));
    if (rank == 0) return refuse("is none for every layer, so there is nothing to train");
    return std::vector<uint32_t>(config.n_layers, rank);
  }
  std::vector<std::optional<uint32_t>> ranks(config.n_layers);
  for (std::string_view rest = text; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      return refuse(fmt::format("'{}' has no layers; expected a list such as 0-27=128,28-31=1024", part));
    }
    TIERD_ASSIGN(const LayerRun layers, parse_layers(part.substr(0, equals), config.n_layers));
    TIERD_ASSIGN(const uint32_t rank, parse_value(part.substr(equals + 1), config));
    for (uint32_t layer = layers.first; layer <= layers.last; ++layer) {
      if (ranks[layer]) return refuse(fmt::format("layer {} is named twice", layer));
      ranks[layer] = rank;
    }
  }
  std::vector<uint32_t> all;
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    if (!ranks[layer]) {
      return refuse(
          fmt::format("layer {} is not named; leave it without a predictor with {}=none", layer, layer));
    }
    all.push_back(*ranks[layer]);
  }
  if (std::all_of(all.begin(), all.end(), [](uint32_t rank) { return rank == 0; })) {
    return refuse("is none for every layer, so there is nothing to train");
  }
  return all;
}

}  // namespace tierd
