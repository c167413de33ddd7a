#include "tools/lab/plan/cost_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/check.h"

namespace tierd {
namespace {

constexpr double kMostSparsity = 0.95;  // the most that the greedy rule chooses
constexpr uint32_t kMostGap = 64;       // longest gap that is read through, in pieces
constexpr double kLongestRead = 1 << 20;
constexpr double kFewestEnds = 1e-6;  // ends of runs, a piece, if all pieces are wanted

double sparsity_of(uint64_t budget, uint64_t model_bytes, std::optional<double> given) {
  const double asked = 1 - static_cast<double>(budget) / static_cast<double>(model_bytes);
  return given.value_or(std::clamp(asked, 0.0, kMostSparsity));
}

}  // namespace

double scattered_seconds(const ReadCurve& disk, double total, uint64_t bytes, bool aligned, double density) {
  TIERD_CHECK(density >= 0 && density <= 1);
  const auto piece = static_cast<double>(bytes);
  double best = disk.seconds(total, bytes, aligned);
  // A gap between wanted pieces has k others with probability density * (1 - density)^k. Gaps of at most
  // `most` are read through.
  double longer = 1 - density;  // probability of a gap longer than `most`
  double read = 1;              // pieces read for each wanted one
  for (uint32_t most = 0; most <= kMostGap; ++most) {
    if (most > 0) {
      read += most * density * longer;
      longer *= 1 - density;
    }
    const double run = read / std::max(longer, kFewestEnds) * piece;
    const auto whole = static_cast<uint64_t>(std::min(run, kLongestRead));
    const double each = disk.seconds(read * piece, std::max<uint64_t>(whole, bytes), aligned);
    best = std::min(best, total / piece * each);
  }
  return best;
}

double lossless_token(const CostModel& model, uint64_t budget) {
  const double channels = model.layer_bytes() * model.layers;
  const double weights = channels + static_cast<double>(model.head_bytes);
  const double streamed =
      std::max(0.0, weights + static_cast<double>(model.fixed_bytes) - static_cast<double>(budget));
  const double computing = weights / model.memory_rate;
  return std::max(computing, streamed / model.flash.points().back().bytes_per_second);
}

double CostModel::layer_bytes() const {
  double bytes = 0;
  for (const ChannelOperator& each : operators) bytes += each.layer_bytes();
  return bytes;
}

double CostModel::head_seconds(double streamed) const {
  return std::max(static_cast<double>(head_bytes) / memory_rate,
                  streamed / flash.points().back().bytes_per_second);
}

std::optional<CostEstimate> estimate_cost(const CostModel& model, uint64_t budget, double sparsity,
                                          uint32_t group) {
  TIERD_CHECK(model.layers > 0 && sparsity >= 0 && sparsity < 1);
  CostEstimate cost{.sparsity = sparsity, .group = group};
  const double used = 1 - sparsity;
  const uint32_t layers = std::clamp(group, 1u, model.layers);
  const double all = model.layer_bytes() * model.layers;
  const double group_bytes = model.layer_bytes() * used * layers;
  const double room = static_cast<double>(budget) - static_cast<double>(model.fixed_bytes);
  if (room < (group == 0 ? 0 : group_bytes)) return std::nullopt;
  cost.group_bytes = std::min(group_bytes, room);
  const double beside = room - cost.group_bytes - static_cast<double>(model.head_bytes);
  const double streamed_head = std::max(0.0, -beside);
  cost.cache_bytes = std::clamp(beside, 0.0, all);
  cost.hits = model.hits.value_or(cost.cache_bytes / all);
  cost.compute = group_bytes / model.memory_rate;

  const double density = (1 - cost.hits) * used;  // of the missed channels, among all
  const auto seconds = [&](double bytes, uint64_t chunk, bool aligned, double share) {
    return model.joins_reads ? scattered_seconds(model.flash, bytes, chunk, aligned, share)
                             : model.flash.seconds(bytes, chunk, aligned);
  };
  double literal_demand = 0;
  double literal_preload = 0;
  for (const ChannelOperator& each : model.operators) {
    const double bytes = each.layer_bytes() * density * layers;
    const bool ahead = group > 0 && each.similarity.has_value();
    const double unforeseen = ahead ? 1 - *each.similarity : 1;
    const uint64_t chunk = each.channel_bytes * layers;
    const double one_by_one = model.flash.seconds(bytes, each.channel_bytes, each.aligned);
    cost.load += one_by_one;
    literal_demand += one_by_one * unforeseen;
    cost.on_demand += seconds(bytes * unforeseen, each.channel_bytes, each.aligned, density * unforeseen);
    if (bytes * unforeseen > 0) cost.on_demand += model.first_read * layers;
    cost.flash_bytes += bytes * (ahead ? 1 + unforeseen : 1) / layers * model.layers;
    if (!ahead) continue;
    literal_preload += model.flash.seconds(bytes, chunk, each.aligned);
    cost.preload += seconds(bytes, chunk, each.aligned, density);
  }
  cost.flash_bytes += streamed_head;
  const double groups = static_cast<double>(model.layers) / layers;
  const double head = model.head_seconds(streamed_head);
  const double overlapped = cost.on_demand + std::max(cost.preload, cost.compute);
  cost.steady_token = groups * overlapped + head;
  const double literal_overlap = literal_demand + std::max(literal_preload, cost.compute);
  cost.literal_token = cost.load + (groups - 1) * literal_overlap + cost.compute + head;
  cost.hidden = cost.preload == 0 ? 0 : std::min(1.0, cost.compute / cost.preload);
  if (group == 0) {
    cost.steady_token = groups * (cost.on_demand + cost.compute) + head;
    cost.literal_token = groups * (cost.load + cost.compute) + head;
  }
  return cost;
}

std::optional<CostChoice> choose_cost(const CostModel& model, uint64_t budget, uint64_t model_bytes,
                                      std::optional<double> sparsity, double least_gain) {
  const double s = sparsity_of(budget, model_bytes, sparsity);
  auto best = estimate_cost(model, budget, s, 1);
  if (!best) return std::nullopt;
  for (uint32_t group = 2; group <= model.layers; ++group) {
    if (best->preload <= best->compute)
      return CostChoice{*best, "reading ahead takes no longer than computing"};
    const auto larger = estimate_cost(model, budget, s, group);
    if (!larger) return CostChoice{*best, "a larger group does not fit the budget"};
    const double before = best->preload / best->group;
    if (larger->preload / group > before * (1 - least_gain))
      return CostChoice{*best, fmt::format("another layer wins less than {:.3g} %", 100 * least_gain)};
    best = larger;
  }
  return CostChoice{*best, "there are no more layers"};
}

CostChoice choose_fastest(const CostModel& model, uint64_t budget, uint64_t model_bytes,
                          std::optional<double> sparsity, double least_gain) {
  const auto choice = choose_cost(model, budget, model_bytes, sparsity, least_gain);
  const auto without = estimate_cost(
      model, budget, choice ? choice->chosen.sparsity : sparsity_of(budget, model_bytes, sparsity), 0);
  TIERD_CHECK(without.has_value());
  if (!choice) return {*without, "the channels of one layer do not fit the budget"};
  if (without->steady_token >= choice->chosen.steady_token) return *choice;
  return {*without, fmt::format("nothing read ahead is faster than the N = {} of the greedy search",
                                choice->chosen.group)};
}

}  // namespace tierd
