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
        "a GGUF file, Hugging Face folder, llama2.c checkpoint or store (-m), or a shape without weights of "
        "configs/models, which runs in virtual time only"},
    Key{"model.tokenizer", at<&Config::tokenizer>(), "", "a tokenizer to use instead of the model's"},
    Key{"model.zeros", at<&Config::zeros>(), "",
        "for a shape without weights: the share of each matrix that is assumed to be zero after pruning, in "
        "per cent"},
    Key{"model.layout", at<&Config::layout>(), "row|neuron|channel-group",
        "how a model that is not a store is cut into neurons: neuron makes one of the rows and the column of "
        "each FFN neuron, channel-group one of each input channel of a matrix"},
    Key{"model.layer_group", at<&Config::layer_group>(), "",
        "for layout channel-group: number of consecutive layers whose channels of the same number are "
        "contiguous in the data file"},
    Key{"model.experts", at<&Config::experts>(), "whole|channels",
        "for a mixture in layout channel-group: one neuron for each expert, or one for each channel of an "
        "expert, which is faster where experts are large and memory holds few of them"},
    Key{"model.order", at<&Config::order>(), "",
        "for layout channel-group: a file of rates, written by tier profile --thresholds; the channels with "
        "the highest rates are stored next to each other"},
    Key{"model.encoding", at<&Config::encoding>(),
        "source|f32|f16|bf16|q8_0|q4_0|q4_k|q5_k|q6_k|q4_1|q5_0|q5_1|q2_k|"
        "q3_k|iq4_nl|iq4_xs|mxfp4",
        "encoding of the matrices; one other than the source's can be lossy, which the store's manifest "
        "records"},
    Key{"model.head_encoding", at<&Config::head_encoding>(),
        "same|source|f32|f16|bf16|q8_0|q4_0|q4_k|q5_k|q6_k|q4_1|q5_0|q5_1|q2_k|"
        "q3_k|iq4_nl|iq4_xs|mxfp4",
        "encoding of embedding and head; same is that of model.encoding"},
    Key{"model.bundling", at<&Config::bundling>(), "row-column|none",
        "for layout neuron: the rows and the column of a neuron are one extent, or (none, for comparison) "
        "separate ones"},
    Key{"model.compression", at<&Config::compression>(), "",
        "none; bitmap, for a pruned model: one bit for each weight, then the non-zero weights; or the name "
        "of a codec plugin, such as zstd, with the parameters of the table [codec]. All are lossless"},
    Key{"model.editions", at<&Config::editions>(), "",
        "none, or further encodings for bundles and experts, each smaller than the one before, as in "
        "q8_0,q4_0; the quantizer chooses one for each neuron of a pass"},
    Key{"run.threads", at<&Config::threads>(), "", "number of compute threads; 0: one for each core (-t)"},
    Key{"run.context", at<&Config::context>(), "",
        "positions of each sequence; 0: the model's, at most 4096 (-c)"},
    Key{"run.sequences", at<&Config::sequences>(), "", "number of texts that are generated at once (-np)"},
    Key{"run.ubatch", at<&Config::ubatch>(), "", "maximum number of tokens in a prefill chunk (-ub)"},
    Key{"run.kv", at<&Config::kv>(), "f16|f32", "encoding of the KV cache"},
    Key{"run.seed", at<&Config::seed>(), "",
        "seed of sampling and of strategies that use random numbers (-s)"},
    Key{"run.bind", at<&Config::bind>(), "", "bind each compute thread to a core"},
    Key{"run.dense", at<&Config::dense>(), "",
        "the unit that runs the dense segments, as in dram.1 for the second agent of the tier dram; empty: "
        "the first unit"},
    Key{"run.attention", at<&Config::attention>(), "",
        "the unit that has the KV cache and computes attention, as in dram.1, or a tier, as in dram, whose "
        "units share the heads; empty: the unit of run.dense"},
    Key{"run.agent_deadline_ms", at<&Config::agent_deadline_ms>(), "",
        "milliseconds after which an agent with its own thread that completes no message is given up, and "
        "the run continues without it; 0: never"},
    Key{"run.clock", at<&Config::clock>(), "wall|model",
        "wall: real time; model: virtual time, computed from the description in run.machine"},
    Key{"run.execute", at<&Config::execute>(), "real|trace",
        "trace, for run.clock = model: computes the time only, and neither reads nor computes neurons"},
    Key{"run.machine", at<&Config::machine>(), "",
        "machine description for run.clock = model: a file, or a name in configs/hardware; tier calibrate "
        "writes one of this machine"},
    Key{"run.energy", at<&Config::energy>(), "",
        "machine description whose table [energy] has the power of the devices: a file, or a name in "
        "configs/hardware; empty: run.machine if it has the table, else rtx3090-box"},
    Key{"run.trace", at<&Config::trace>(), "",
        "file to which the kernel's messages and decisions are written (--trace)"},
    Key{"run.timeline", at<&Config::timeline>(), "",
        "file to which the times of reads and computations are written, as Chrome trace events (--timeline)"},
    Key{"compute.activations", at<&Config::activations>(), "int8|f32",
        "encoding of the activations that block-encoded weights are multiplied with; int8 is lossy, and the "
        "report has its error"},
    Key{"compute.kernels", at<&Config::kernels>(), "auto|avx512-vnni|avx2|scalar", "instruction set"},
    Key{"pressure.source", at<&Config::pressure, &PressureConfig::source>(), "off|psi|cgroup",
        "source of memory pressure, at which the lowest tier shrinks: psi, the time that tasks wait for "
        "memory; cgroup, the used share of the memory cgroup's limit"},
    Key{"pressure.stall_ms", at<&Config::pressure, &PressureConfig::stall_ms>(), "",
        "for psi: milliseconds of waiting within a window that count as pressure; 1 to pressure.window_ms"},
    Key{"pressure.window_ms", at<&Config::pressure, &PressureConfig::window_ms>(), "",
        "for psi: milliseconds of a window, and the minimum time between two steps down; 500 to 10000, "
        "without privileges a multiple of 2000"},
    Key{"pressure.limit_percent", at<&Config::pressure, &PressureConfig::limit_percent>(), "",
        "for cgroup: per cent of the limit above which use, without idle file pages, counts as pressure; 1 "
        "to 99"},
    Key{"pressure.step", at<&Config::pressure, &PressureConfig::step>(), "",
        "bytes by which the tier shrinks or grows in one step, written as tiers.dram.capacity"},
    Key{"pressure.least", at<&Config::pressure, &PressureConfig::least>(), "",
        "capacity below which the tier does not shrink, written as tiers.dram.capacity"},
    Key{"pressure.calm_ms", at<&Config::pressure, &PressureConfig::calm_ms>(), "",
        "milliseconds without pressure after which the tier grows by a step, up to tiers.dram.capacity; 1 to "
        "86400000"},
    Key{"speculation.model", at<&Config::speculation, &SpeculationConfig::model>(), "",
        "a small model with the same vocabulary that guesses tokens (--model-draft)"},
    Key{"speculation.lookup", at<&Config::speculation, &SpeculationConfig::lookup>(), "",
        "guess tokens from repetitions in the text (--prompt-lookup)"},
    Key{"speculation.most", at<&Config::speculation, &SpeculationConfig::most>(), "",
        "maximum number of tokens guessed at once, 1 to 63 (--draft-max)"},
    Key{"plugins.path", at<&Config::plugin_path>(), "",
        "folders with plugins, separated by ':' (--plugin-path, TIERD_PLUGIN_PATH)"},
    Key{"plugins.deadline_ms", at<&Config::plugin_deadline_ms>(), "",
        "milliseconds after which a call is too long; a plugin is not called again after one"},
    Key{"predictor.name", at<&Config::predictor, &StrategyConfig::name>(), "",
        "the plugin that predicts which neurons are active"},
    Key{"predictor.fallback", at<&Config::predictor, &StrategyConfig::fallback>(), "",
        "the plugin that replaces it after a fault; empty: requests fail after one"},
    Key{"predictor.tensors", at<&Config::predictor, &StrategyConfig::tensors>(), "",
        "a safetensors file with tensors for the plugin; its bytes are part of the budget"},
    Key{"quantizer.name", at<&Config::quantizer, &StrategyConfig::name>(), "",
        "the plugin that chooses the encoding of each neuron"},
    Key{"quantizer.fallback", at<&Config::quantizer, &StrategyConfig::fallback>(), "",
        "the plugin that replaces it after a fault; empty: requests fail after one"},
    Key{"quantizer.tensors", at<&Config::quantizer, &StrategyConfig::tensors>(), "",
        "a safetensors file with tensors for the plugin; its bytes are part of the budget"},
    Key{"cache.name", at<&Config::cache, &StrategyConfig::name>(), "",
        "the plugin that decides which neurons stay in each memory"},
    Key{"cache.fallback", at<&Config::cache, &StrategyConfig::fallback>(), "",
        "the plugin that replaces it after a fault; empty: requests fail after one"},
    Key{"cache.tensors", at<&Config::cache, &StrategyConfig::tensors>(), "",
        "a safetensors file with tensors for the plugin; its bytes are part of the budget"},
    Key{"balancer.name", at<&Config::balancer, &StrategyConfig::name>(), "",
        "the plugin that decides which unit computes each neuron"},
    Key{"balancer.fallback", at<&Config::balancer, &StrategyConfig::fallback>(), "",
        "the plugin that replaces it after a fault; empty: requests fail after one"},
    Key{"balancer.tensors", at<&Config::balancer, &StrategyConfig::tensors>(), "",
        "a safetensors file with tensors for the plugin; its bytes are part of the budget"},
    Key{"heat.name", at<&Config::heat, &StrategyConfig::name>(), "",
        "a predictor plugin that measures the heat of neurons, for caches and balancers that use it; empty: "
        "the plugin of [predictor], if it can"},
    Key{"heat.fallback", at<&Config::heat, &StrategyConfig::fallback>(), "",
        "the plugin that replaces it after a fault; empty: requests fail after one"},
    Key{"heat.tensors", at<&Config::heat, &StrategyConfig::tensors>(), "",
        "a safetensors file with tensors for the plugin; its bytes are part of the budget"},
    Key{"scheduler.prefetch", at<&Config::prefetch>(), "", "read neurons ahead for later sites"},
    Key{"scheduler.measure_every", at<&Config::measure_every>(), "",
        "every N steps, compute all neurons of bundled FFNs to measure the missed mass; 0: never"},
    Key{"scheduler.shuffle", at<&Config::shuffle>(), "",
        "for tests: the seed of a random order in which messages are delivered; 0: their own order"},
};

// The keys below tiers.NAME.
inline constexpr std::string_view kTiers = "tiers.";
inline const std::array kTierKeys = {
    TierKey{"kind", in_tier<&TierConfig::kind>(), "",
            "the agent that serves the tier; empty: the agent of the tier's name"},
    TierKey{"count", in_tier<&TierConfig::count>(), "",
            "number of agents of that kind, among which the balancer divides the tier's work; 0: no tier"},
    TierKey{"capacity", in_tier<&TierConfig::capacity>(), "",
            "bytes of all agents of the tier together: auto, the available memory but at most all; all, "
            "every neuron; a share of the tensor bytes, as in 50%; or a size"},
    TierKey{"staging", in_tier<&TierConfig::staging>(), "",
            "maximum size of the staging, or a share of the tier, as in 30%"},
    TierKey{"over", in_tier<&TierConfig::over>(), "",
            "the tier below, which supplies the neurons that this one misses; empty: the store"},
    TierKey{
        "link", in_tier<&TierConfig::link>(), "",
        "tiers from which neurons are fetched, the nearest first, separated by ','; empty: tiers.NAME.over"},
    TierKey{"compute", in_tier<&TierConfig::compute>(), "",
            "whether its agents compute; false: the tier only keeps neurons for the tiers over it"},
    TierKey{"compressed", in_tier<&TierConfig::compressed>(), "auto|kept|expanded",
            "form of neurons that are compressed in the store: kept, computed from as stored; expanded when "
            "they arrive; auto: kept, unless a tier that supplies them has expanded them"},
    TierKey{"recode", in_tier<&TierConfig::recode>(), "",
            "none, or further encodings for bundles and experts in this tier, each smaller than the one "
            "before, as in q8_0,q4_0; unlike those of model.editions they are not stored: the processor "
            "encodes neurons while they are moved from the tier below"},
    TierKey{"thread", in_tier<&TierConfig::thread>(), "kernel|own",
            "the thread that drives each agent: the kernel's, or one of its own"},
    TierKey{"cores", in_tier<&TierConfig::cores>(), "",
            "the cores of its threads, as in 0-3,8; empty: those of run.threads"},
    TierKey{"cache.name", in_tier_cache<&StrategyConfig::name>(), "",
            "the plugin that decides which neurons stay in its memories; empty: that of [cache]"},
    TierKey{"cache.fallback", in_tier_cache<&StrategyConfig::fallback>(), "",
            "as cache.fallback of the whole configuration"},
    TierKey{"cache.tensors", in_tier_cache<&StrategyConfig::tensors>(), "",
            "as cache.tensors of the whole configuration"},
};

}  // namespace tierd
