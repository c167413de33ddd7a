// The figures of a plan: of a dense model in channels, or of a mixture of experts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/report/figure.h"

namespace tierd {

struct ReadSpeedFigures {
  uint64_t read_bytes = 0;
  double bytes_per_second = 0;

  static constexpr auto figures() {
    using F = ReadSpeedFigures;
    return std::tuple(
        Figure{&F::read_bytes, "read_bytes", Quantity::bytes, Adds::latest, "of each read"},
        Figure{&F::bytes_per_second, "bytes_per_second", Quantity::bytes_per_second, Adds::latest, "random"});
  }
};

// The figures of a token under a cache-aware mask.
struct CacheAwareFigures {
  double kept = 0, kept_of_experts = 0, reads_per_token = 0, flash_bytes_per_token = 0;
  double disk_ms = 0, compute_ms = 0, choosing_ms = 0;
  double energy_lost = 0, energy_lost_by_largest = 0, steady_tokens_per_second = 0;

  static constexpr auto figures() {
    using F = CacheAwareFigures;
    constexpr auto kTokens = Quantity::tokens_per_second;
    return std::tuple(
        Figure{&F::kept, "kept", Quantity::share, Adds::latest, "of the channels that every token uses"},
        Figure{&F::kept_of_experts, "kept_of_experts", Quantity::share, Adds::latest, "of the experts'"},
        Figure{&F::reads_per_token, "reads_per_token", Quantity::count, Adds::latest, "of flash"},
        Figure{&F::flash_bytes_per_token, "flash_bytes_per_token", Quantity::bytes, Adds::latest, "read"},
        Figure{&F::disk_ms, "disk_ms", Quantity::ms, Adds::latest, "of a token"},
        Figure{&F::compute_ms, "compute_ms", Quantity::ms, Adds::latest, "of a token"},
        Figure{&F::choosing_ms, "choosing_ms", Quantity::ms, Adds::latest, "before the reads of operators"},
        Figure{&F::energy_lost, "energy_lost", Quantity::share, Adds::latest, "of the inputs'"},
        Figure{&F::energy_lost_by_largest, "energy_lost_by_largest", Quantity::share, Adds::latest,
               "if the largest inputs were used"},
        Figure{&F::steady_tokens_per_second, "steady_tokens_per_second", kTokens, Adds::latest, "predicted"});
  }
};

struct PlanFigures {
  std::string model, mask, fastest;
  uint64_t tensor_bytes = 0, budget_bytes = 0, fixed_bytes = 0;
  double lossless_tokens_per_second = 0, sparsity = 0, missing_ahead = 0;
  bool store_given = false, by_rate = false;
  CacheAwareFigures cache_aware;
  double memory_bytes_per_second = 0, first_read_ms = 0;
  std::vector<ReadSpeedFigures> flash;

  static constexpr auto figures() {
    using F = PlanFigures;
    constexpr auto kTokens = Quantity::tokens_per_second, kBytes = Quantity::bytes_per_second;
    return std::tuple(
        Figure{&F::model, "model", Quantity::text, Adds::latest, "its name"},
        Figure{&F::tensor_bytes, "tensor_bytes", Quantity::bytes, Adds::latest, "of all weights"},
        Figure{&F::budget_bytes, "budget_bytes", Quantity::bytes, Adds::latest, "of the first tier"},
        Figure{&F::fixed_bytes, "fixed_bytes", Quantity::bytes, Adds::latest, "of it, for other things"},
        Figure{&F::mask, "mask", Quantity::text, Adds::latest, "cache-aware or largest"},
        Figure{&F::fastest, "fastest", Quantity::text, Adds::latest, "lossless, or the mask"},
        Figure{&F::lossless_tokens_per_second, "lossless_tokens_per_second", kTokens, Adds::latest,
               "predicted"},
        Figure{&F::store_given, "store_given", Quantity::flag, Adds::latest, "the model is a store"},
        Figure{&F::sparsity, "sparsity", Quantity::share, Adds::latest, "of the inputs"},
        Figure{&F::missing_ahead, "missing_ahead", Quantity::share, Adds::latest, "of an operator's reads"},
        Figure{&F::by_rate, "by_rate", Quantity::flag, Adds::latest, "the most used channels are first"},
        Figure{&F::cache_aware, "cache_aware", Quantity::parts, Adds::latest, "of a token under that mask"},
        Figure{&F::memory_bytes_per_second, "memory_bytes_per_second", kBytes, Adds::latest, "measured"},
        Figure{&F::first_read_ms, "first_read_ms", Quantity::ms, Adds::latest, "of a small read alone"},
        Figure{&F::flash, "flash", Quantity::parts, Adds::latest, "measured, by size of the reads"});
  }
  bool is_cache_aware() const { return mask == "cache-aware"; }
  bool is_lossless() const { return fastest == "lossless"; }
};

// The cost of a token with layers read in groups (CostEstimate).
struct LayerGroupFigures {
  uint32_t layer_group = 0;
  double group_bytes = 0, cache_bytes = 0, hits = 0, hidden = 0;
  double load_ms = 0, on_demand_ms = 0, preload_ms = 0, compute_ms = 0;
  double flash_bytes_per_token = 0, equation_1_tokens_per_second = 0, steady_tokens_per_second = 0;

  static constexpr auto figures() {
    using F = LayerGroupFigures;
    constexpr auto kTokens = Quantity::tokens_per_second;
    return std::tuple(
        Figure{&F::layer_group, "layer_group", Quantity::count, Adds::latest, "0: no reads ahead"},
        Figure{&F::group_bytes, "group_bytes", Quantity::bytes, Adds::latest, "M_cl"},
        Figure{&F::cache_bytes, "cache_bytes", Quantity::bytes, Adds::latest, "for channels"},
        Figure{&F::hits, "hits", Quantity::share, Adds::latest, "of the used channels"},
        Figure{&F::load_ms, "load_ms", Quantity::ms, Adds::latest, "T_load, of single reads"},
        Figure{&F::on_demand_ms, "on_demand_ms", Quantity::ms, Adds::latest, "T_onload, of a group"},
        Figure{&F::preload_ms, "preload_ms", Quantity::ms, Adds::latest, "T_preload"},
        Figure{&F::compute_ms, "compute_ms", Quantity::ms, Adds::latest, "T_comp"},
        Figure{&F::hidden, "hidden", Quantity::share, Adds::latest, "of the time of reads ahead"},
        Figure{&F::flash_bytes_per_token, "flash_bytes_per_token", Quantity::bytes, Adds::latest, "read"},
        Figure{&F::equation_1_tokens_per_second, "equation_1_tokens_per_second", kTokens, Adds::latest,
               "the first group is waited for"},
        Figure{&F::steady_tokens_per_second, "steady_tokens_per_second", kTokens, Adds::latest,
               "the first group was read before"});
  }
};

struct OperatorFigures {
  std::string name;
  uint64_t channel_bytes = 0;
  double small_bytes_per_second = 0, large_bytes_per_second = 0;
  std::optional<double> similarity;

  static constexpr auto figures() {
    using F = OperatorFigures;
    constexpr auto kBytes = Quantity::bytes_per_second;
    return std::tuple(
        Figure{&F::name, "name", Quantity::text, Adds::latest, "of the operator"},
        Figure{&F::channel_bytes, "channel_bytes", Quantity::bytes, Adds::latest, "in the store"},
        Figure{&F::small_bytes_per_second, "small_bytes_per_second", kBytes, Adds::latest, "of a channel"},
        Figure{&F::large_bytes_per_second, "large_bytes_per_second", kBytes, Adds::latest, "of a group's"},
        Figure{&F::similarity, "similarity", Quantity::share, Adds::latest, "null: not read ahead", true});
  }
};

// The plan of a dense model in channels.
struct DensePlan : PlanFigures {
  std::string sparsity_from, hits_from, similarity_from, why, tier;
  uint32_t store_layer_group = 0;
  std::vector<OperatorFigures> operators;
  std::vector<LayerGroupFigures> groups;
  LayerGroupFigures chosen;
  std::optional<LayerGroupFigures> of_store;

  static constexpr auto figures() {
    using F = DensePlan;
    return std::tuple_cat(
        PlanFigures::figures(),
        std::tuple(
            Figure{&F::sparsity_from, "sparsity_from", Quantity::text, Adds::latest, "its origin"},
            Figure{&F::hits_from, "hits_from", Quantity::text, Adds::latest, "origin of groups' hits"},
            Figure{&F::similarity_from, "similarity_from", Quantity::text, Adds::latest, "its origin"},
            Figure{&F::operators, "operators", Quantity::parts, Adds::latest, "of a layer"},
            Figure{&F::groups, "groups", Quantity::parts, Adds::latest, "by layers of a group"},
            Figure{&F::chosen, "chosen", Quantity::parts, Adds::latest, "the fastest group"},
            Figure{&F::of_store, "of_store", Quantity::parts, Adds::latest, "the store's group"},
            Figure{&F::why, "why", Quantity::text, Adds::latest, "the search ended"},
            Figure{&F::store_layer_group, "store_layer_group", Quantity::count, Adds::latest, "layers"},
            Figure{&F::tier, "tier", Quantity::text, Adds::latest, "the first tier"}));
  }
};

// Whole experts, without loss.
struct MixtureFigures {
  uint32_t layers = 0, experts = 0, used = 0;
  uint64_t expert_bytes = 0, shared_bytes = 0;
  double kept = 0, hits = 0;
  std::string hits_from;
  double reads_per_token = 0, flash_bytes_per_token = 0, streamed_bytes_per_token = 0;
  double disk_ms = 0, compute_ms = 0, least_precision = 0;

  static constexpr auto figures() {
    using F = MixtureFigures;
    return std::tuple(
        Figure{&F::layers, "layers", Quantity::count, Adds::latest, "with experts"},
        Figure{&F::experts, "experts", Quantity::count, Adds::latest, "of a layer"},
        Figure{&F::used, "used", Quantity::count, Adds::latest, "of these, by a token"},
        Figure{&F::expert_bytes, "expert_bytes", Quantity::bytes, Adds::latest, "of one"},
        Figure{&F::shared_bytes, "shared_bytes", Quantity::bytes, Adds::latest, "used by every token"},
        Figure{&F::kept, "kept", Quantity::share, Adds::latest, "of the experts, resident"},
        Figure{&F::hits, "hits", Quantity::share, Adds::latest, "of the chosen experts, resident"},
        Figure{&F::hits_from, "hits_from", Quantity::text, Adds::latest, "its origin"},
        Figure{&F::reads_per_token, "reads_per_token", Quantity::count, Adds::latest, "experts"},
        Figure{&F::flash_bytes_per_token, "flash_bytes_per_token", Quantity::bytes, Adds::latest, "read"},
        Figure{&F::streamed_bytes_per_token, "streamed_bytes_per_token", Quantity::bytes, Adds::latest,
               "of these, used by every token"},
        Figure{&F::disk_ms, "disk_ms", Quantity::ms, Adds::latest, "of a token"},
        Figure{&F::compute_ms, "compute_ms", Quantity::ms, Adds::latest, "of a token"},
        Figure{&F::least_precision, "least_precision", Quantity::share, Adds::latest,
               "of guesses, with which reading ahead pays"});
  }
};

struct MixturePlan : PlanFigures {
  MixtureFigures mixture;
  std::string experts_of_store;

  static constexpr auto figures() {
    using F = MixturePlan;
    return std::tuple_cat(
        PlanFigures::figures(),
        std::tuple(Figure{&F::mixture, "mixture", Quantity::parts, Adds::latest, "whole experts"},
                   Figure{&F::experts_of_store, "experts_of_store", Quantity::text, Adds::latest,
                          "whole or channels"}));
  }
};

using FoundPlan = std::variant<DensePlan, MixturePlan>;

}  // namespace tierd
