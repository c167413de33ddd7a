// All keys of a configuration except plugins' parameters: field, accepted values and help of each.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/config/config.h"

namespace tierd {

// The field of a value in a Config, or in one of its tiers.
template <class In, class T>
using Place = T& (*)(In&);
template <class In>
using FieldOf =
    std::variant<Place<In, std::string>, Place<In, uint32_t>, Place<In, uint64_t>, Place<In, bool>>;

template <class In, auto Member>
constexpr auto place() {
  return +[](In & in) -> auto& {
    return in.*Member;
  };
}
template <auto Member>
constexpr auto at() {
  return place<Config, Member>();
}
template <auto Table, auto Member>
constexpr auto at() {
  return +[](Config & config) -> auto& {
    return config.*Table.*Member;
  };
}
template <auto Member>
constexpr auto in_tier() {
  return place<TierConfig, Member>();
}
template <auto Member>
constexpr auto in_tier_cache() {
  return +[](TierConfig & tier) -> auto& {
    return tier.cache.*Member;
  };
}

template <class In>
struct KeyOf {
  std::string_view path;
  FieldOf<In> field;
  std::string_view choices;  // "a|b", or empty: any value of the type
  std::string_view help;
};

using Key = KeyOf<Config>;
using TierKey = KeyOf<TierConfig>;

inline const std::array kKeys = {
    Key{"model.path", at<&Config::model>(), "",
        "GGUF file, Hugging Face folder, llama2.c checkpoint or store (-m); or a shape, "
        "configs/models/*.toml, "
        "whose runs can be played in virtual time"},
    Key{"model.tokenizer", at<&Config::tokenizer>(), "", "a tokenizer to use instead of the model's"},
    Key{"model.zeros", at<&Config::zeros>(), "",
        "of a shape without weights, configs/models/*.toml: so many per cent of each matrix are taken to be "
        "zeros, as pruning leaves them"},
    Key{"model.layout", at<&Config::layout>(), "row|neuron|channel-group",
        "how a model that is no store is cut: neuron bundles rows and columns of the FFN, channel-group "
        "takes "
        "every matrix by its input channels"},
    Key{"model.layer_group", at<&Config::layer_group>(), "",
        "of layout channel-group: of so many layers the channels of one number lie side by side"},
    Key{"model.experts", at<&Config::experts>(), "whole|channels",
        "of a mixture in layout channel-group: whether an expert is one neuron, or each is cut into channels "
        "as the other operators are, which pays where experts are large and memory holds few of them"},
    Key{"model.order", at<&Config::order>(), "",
        "of layout channel-group: a file of rates (tier-profile --thresholds); the channels that are "
        "used most lie side by side"},
    Key{"model.encoding", at<&Config::encoding>(), "source|f32|f16|bf16|q8_0|q4_0|q4_k|q5_k|q6_k",
        "of the matrices; another than the source's may lose something, which the store says"},
    Key{"model.head_encoding", at<&Config::head_encoding>(),
        "same|source|f32|f16|bf16|q8_0|q4_0|q4_k|q5_k|q6_k",
        "of embedding and head: the same, or one of their own"},
    Key{"model.bundling", at<&Config::bundling>(), "row-column|none",
        "of layout neuron: rows and column of a neuron side by side, or, to compare, apart"},
    Key{"model.compression", at<&Config::compression>(), "",
        "none; bitmap, of a pruned model: a bit for each weight and those that are not zero; or a codec, "
        "which compresses each neuron, such as zstd, told what the table codec says. Nothing is lost"},
    Key{"model.editions", at<&Config::editions>(), "",
        "none, or encodings such as q8_0,q4_0, each smaller than the one before: bundles and experts are "
        "stored in these as well, and the quantizer says in which a neuron is used"},
    Key{"run.threads", at<&Config::threads>(), "", "compute workers, 0 is one a core (-t)"},
    Key{"run.context", at<&Config::context>(), "",
        "positions of each sequence, 0 is the model's but at most 4096 (-c)"},
    Key{"run.sequences", at<&Config::sequences>(), "", "texts that are continued at once (-np)"},
    Key{"run.ubatch", at<&Config::ubatch>(), "", "most tokens of a prefill chunk (--ub)"},
    Key{"run.kv", at<&Config::kv>(), "f16|f32", "encoding of the KV cache"},
    Key{"run.seed", at<&Config::seed>(), "", "of sampling and of strategies that draw lots (-s)"},
    Key{"run.bind", at<&Config::bind>(), "", "bind compute workers to cores"},
    Key{"run.dense", at<&Config::dense>(), "",
        "the unit that runs the dense segments: dram.1 is the second of tiers.dram.count; the first if "
        "empty"},
    Key{"run.attention", at<&Config::attention>(), "",
        "who has the KV cache and attends: dram.1, or dram for all units, by heads; the dense unit if empty"},
    Key{"run.agent_deadline_ms", at<&Config::agent_deadline_ms>(), "",
        "an agent with a thread of its own that completes nothing for so long is lost, and the run goes on "
        "without it; 0: never"},
    Key{"run.clock", at<&Config::clock>(), "wall|model",
        "model: virtual time, in which all takes as long as the described machine would"},
    Key{"run.execute", at<&Config::execute>(), "real|trace",
        "with the modelled clock, trace: nothing is read or computed, for its time alone"},
    Key{"run.machine", at<&Config::machine>(), "",
        "description for the modelled clock, a file or its name in configs/hardware; tier-calibrate writes "
        "one"},
    Key{"run.energy", at<&Config::energy>(), "",
        "description whose table energy says what devices draw, a file or its name in configs/hardware; "
        "empty: that of run.machine where it has the table, else rtx3090-box"},
    Key{"run.trace", at<&Config::trace>(), "", "record what the kernel does in this file (--trace)"},
    Key{"run.timeline", at<&Config::timeline>(), "",
        "write when what happened to this file, as Chrome trace events (--timeline)"},
    Key{"compute.activations", at<&Config::activations>(), "int8|f32",
        "what block-encoded weights are multiplied with; int8 is lossy and reports its error"},
    Key{"compute.kernels", at<&Config::kernels>(), "auto|avx512-vnni|avx2|scalar", "instruction set"},
    Key{"pressure.source", at<&Config::pressure, &PressureConfig::source>(), "off|psi|cgroup",
        "who tells that memory is short, so that the lowest tier shrinks until it is not: psi, what tasks "
        "wait "
        "for memory; cgroup, what is used of the memory cgroup's limit"},
    Key{"pressure.stall_ms", at<&Config::pressure, &PressureConfig::stall_ms>(), "",
        "of psi: so much waiting within a window is pressure; 1 to pressure.window_ms"},
    Key{"pressure.window_ms", at<&Config::pressure, &PressureConfig::window_ms>(), "",
        "of psi; and the least time between two steps down; 500 to 10000, without privileges a multiple of "
        "2000"},
    Key{"pressure.limit_percent", at<&Config::pressure, &PressureConfig::limit_percent>(), "",
        "of cgroup: more of the limit in use is pressure, idle pages of files aside; 1 to 99"},
    Key{"pressure.step", at<&Config::pressure, &PressureConfig::step>(), "",
        "what the tier gives back, or takes again, at once; as tiers.dram.capacity"},
    Key{"pressure.least", at<&Config::pressure, &PressureConfig::least>(), "",
        "the capacity that it keeps in any case; as tiers.dram.capacity"},
    Key{"pressure.calm_ms", at<&Config::pressure, &PressureConfig::calm_ms>(), "",
        "after so long without pressure it grows by a step, up to tiers.dram.capacity; 1 to 86400000"},
    Key{"speculation.model", at<&Config::speculation, &SpeculationConfig::model>(), "",
        "a small model of the same vocabulary that guesses tokens (--model-draft)"},
    Key{"speculation.lookup", at<&Config::speculation, &SpeculationConfig::lookup>(), "",
        "guess tokens from what the text has said before (--prompt-lookup)"},
    Key{"speculation.most", at<&Config::speculation, &SpeculationConfig::most>(), "",
        "tokens guessed at once, 1 to 63 (--draft-max)"},
    Key{"plugins.path", at<&Config::plugin_path>(), "",
        "folders with plugins, divided by ':' (--plugin-path, TIERD_PLUGIN_PATH)"},
    Key{"plugins.deadline_ms", at<&Config::plugin_deadline_ms>(), "",
        "a plugin whose call takes longer is not asked again"},
    Key{"predictor.name", at<&Config::predictor, &StrategyConfig::name>(), "", "which neurons are active"},
    Key{"predictor.fallback", at<&Config::predictor, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"predictor.tensors", at<&Config::predictor, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"quantizer.name", at<&Config::quantizer, &StrategyConfig::name>(), "", "in which encoding"},
    Key{"quantizer.fallback", at<&Config::quantizer, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"quantizer.tensors", at<&Config::quantizer, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"cache.name", at<&Config::cache, &StrategyConfig::name>(), "", "what stays in each memory"},
    Key{"cache.fallback", at<&Config::cache, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"cache.tensors", at<&Config::cache, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"balancer.name", at<&Config::balancer, &StrategyConfig::name>(), "", "who computes"},
    Key{"balancer.fallback", at<&Config::balancer, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"balancer.tensors", at<&Config::balancer, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"heat.name", at<&Config::heat, &StrategyConfig::name>(), "",
        "a predictor that says how hot neurons are, for caches and balancers that go by it; empty: "
        "[predictor], if "
        "it can"},
    Key{"heat.fallback", at<&Config::heat, &StrategyConfig::fallback>(), "",
        "what takes its place when it fails; empty: requests fail from then on"},
    Key{"heat.tensors", at<&Config::heat, &StrategyConfig::tensors>(), "",
        "a safetensors file for it, counted in the budget"},
    Key{"scheduler.prefetch", at<&Config::prefetch>(), "", "read ahead for the sites to come"},
    Key{"scheduler.measure_every", at<&Config::measure_every>(), "",
        "in every so many steps bundled FFNs are computed whole, to tell what was missed; 0 is never"},
    Key{"scheduler.shuffle", at<&Config::shuffle>(), "",
        "a seed: deliver messages in a drawn order (for tests)"},
};

// The keys below tiers.NAME.
inline constexpr std::string_view kTiers = "tiers.";
inline const std::array kTierKeys = {
    TierKey{"kind", in_tier<&TierConfig::kind>(), "",
            "the agent that serves the tier, which is named like it if nothing is said"},
    TierKey{
        "count", in_tier<&TierConfig::count>(), "",
        "agents of that kind, which share the tier and its work as the balancer deals it out; 0: no tier"},
    TierKey{"capacity", in_tier<&TierConfig::capacity>(), "",
            "auto: as much as there is, and no more than all; all, a share of the tensor bytes (50%) or a "
            "size; of all its agents together"},
    TierKey{"staging", in_tier<&TierConfig::staging>(), "",
            "most that streaming bytes may occupy, or a share of the tier, 30%"},
    TierKey{
        "over", in_tier<&TierConfig::over>(), "",
        "the tier below, whose cache is asked for what this one misses; none is, but the store, if empty"},
    TierKey{
        "link", in_tier<&TierConfig::link>(), "",
        "tiers that neurons are fetched from, the nearest first, divided by ','; tiers.NAME.over if empty"},
    TierKey{"compute", in_tier<&TierConfig::compute>(), "",
            "whether its agents compute; false: it keeps what tiers over it fetch"},
    TierKey{"compressed", in_tier<&TierConfig::compressed>(), "auto|kept|expanded",
            "neurons that the store has compressed: kept so and computed from, or expanded as they arrive; "
            "auto: kept, unless a tier that they come from has expanded them"},
    TierKey{
        "recode", in_tier<&TierConfig::recode>(), "",
        "none, or encodings such as q8_0,q4_0, each smaller than the one before: bundles and experts are "
        "held in these as well, as model.editions says, but are not stored so: the processor encodes them "
        "anew while they are moved here from the tier below"},
    TierKey{"thread", in_tier<&TierConfig::thread>(), "kernel|own", "who drives each agent"},
    TierKey{"cores", in_tier<&TierConfig::cores>(), "",
            "what its threads are bound to, 0-3,8; those of run.threads if empty"},
    TierKey{"cache.name", in_tier_cache<&StrategyConfig::name>(), "",
            "what stays in its memories; as the table cache says if empty"},
    TierKey{"cache.fallback", in_tier_cache<&StrategyConfig::fallback>(), "", "as cache.fallback"},
    TierKey{"cache.tensors", in_tier_cache<&StrategyConfig::tensors>(), "", "as cache.tensors"},
};

}  // namespace tierd
