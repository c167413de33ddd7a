// The report of tier-bench: the run, its tests and the peer. Bytes, milliseconds and rates are per token
// unless their names say otherwise. Figures of several blocks are medians; parts of a token's time are means.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/report/figure.h"
#include "tools/measurement/summary.h"

namespace tierd {

// A sweep reports its points' run once: members of BenchRunFigures and its parts are empty where points
// differ.
struct ShapeFigures {
  std::optional<std::string> architecture, encoding;
  std::optional<uint32_t> layers, d_model, d_ff, heads, kv_heads, vocab;

  static constexpr auto figures() {
    using F = ShapeFigures;
    return std::tuple(
        Figure{&F::architecture, "architecture", Quantity::text, Adds::latest, "as the model names it", true},
        Figure{&F::layers, "layers", Quantity::count, Adds::latest, "of the model", true},
        Figure{&F::d_model, "d_model", Quantity::count, Adds::latest, "width of the residual stream", true},
        Figure{&F::d_ff, "d_ff", Quantity::count, Adds::latest, "neurons of a feed-forward network", true},
        Figure{&F::heads, "heads", Quantity::count, Adds::latest, "of attention, in a layer", true},
        Figure{&F::kv_heads, "kv_heads", Quantity::count, Adds::latest, "of keys and values, in a layer",
               true},
        Figure{&F::vocab, "vocab", Quantity::tokens, Adds::latest, "that the model knows", true},
        Figure{&F::encoding, "encoding", Quantity::text, Adds::latest, "of the last site's matrices", true});
  }
};

struct BenchBudgetFigures {
  std::optional<uint64_t> capacity_bytes, peak_bytes;
  std::optional<bool> raised_to_least;
  std::map<std::string, std::optional<uint64_t>> lines;

  static constexpr auto figures() {
    using F = BenchBudgetFigures;
    return std::tuple(
        Figure{&F::capacity_bytes, "capacity_bytes", Quantity::bytes, Adds::latest, "of all tiers", true},
        Figure{&F::peak_bytes, "peak_bytes", Quantity::bytes, Adds::latest, "used at once", true},
        Figure{&F::raised_to_least, "raised_to_least", Quantity::flag, Adds::latest, "--fit raised one",
               true},
        Figure{&F::lines, "lines", Quantity::bytes, Adds::latest, "by their use"});
  }
};

struct TextFigures {
  std::optional<std::string> file;
  std::optional<uint64_t> tokens;

  static constexpr auto figures() {
    using F = TextFigures;
    return std::tuple(Figure{&F::file, "file", Quantity::text, Adds::latest, "its path", true},
                      Figure{&F::tokens, "tokens", Quantity::tokens, Adds::latest, "of the text", true});
  }
};

struct GroupFigures {
  std::optional<uint64_t> limit_bytes;
  uint64_t peak_bytes = 0;

  static constexpr auto figures() {
    using F = GroupFigures;
    return std::tuple(
        Figure{&F::limit_bytes, "limit_bytes", Quantity::bytes, Adds::latest, "null: unlimited", true},
        Figure{&F::peak_bytes, "peak_bytes", Quantity::bytes, Adds::latest, "of all processes of the group"});
  }
};

struct ProcessFigures {
  uint64_t peak_rss_bytes = 0;
  std::optional<GroupFigures> group;

  static constexpr auto figures() {
    using F = ProcessFigures;
    return std::tuple(
        Figure{&F::peak_rss_bytes, "peak_rss_bytes", Quantity::bytes, Adds::latest, "of this process"},
        Figure{&F::group, "group", Quantity::parts, Adds::latest, "its memory cgroup", true});
  }
};

struct BenchRunFigures {
  std::optional<std::string> date, commit, host, cpu, model, store, capacity;
  std::string config;
  std::optional<std::string> predictor, quantizer, cache, balancer;
  std::optional<std::string> activations, kv, backend, clock, gap_from, kernels, device, cache_state;
  std::optional<uint64_t> cores, memory_bytes, tensor_bytes, gap_bytes, threads, context, prefill_chunk;
  std::optional<uint64_t> uncounted_tokens, seed;
  std::optional<double> block_seconds, warmup_seconds;
  std::optional<bool> prefetch;
  std::vector<std::string> set;
  ShapeFigures shape;
  BenchBudgetFigures budget;
  std::optional<TextFigures> text;
  std::optional<ProcessFigures> memory;

  static constexpr auto figures() {
    using F = BenchRunFigures;
    return std::tuple(
        Figure{&F::date, "date", Quantity::text, Adds::latest, "of the report", true},
        Figure{&F::commit, "commit", Quantity::text, Adds::latest, "of the program", true},
        Figure{&F::host, "host", Quantity::text, Adds::latest, "name of the machine", true},
        Figure{&F::cpu, "cpu", Quantity::text, Adds::latest, "name of the processor", true},
        Figure{&F::cores, "cores", Quantity::count, Adds::latest, "that the process may use", true},
        Figure{&F::memory_bytes, "memory_bytes", Quantity::bytes, Adds::latest, "of the machine", true},
        Figure{&F::model, "model", Quantity::text, Adds::latest, "its name", true},
        Figure{&F::shape, "shape", Quantity::parts, Adds::latest, "of the model"},
        Figure{&F::store, "store", Quantity::text, Adds::latest, "its folder", true},
        Figure{&F::tensor_bytes, "tensor_bytes", Quantity::bytes, Adds::latest, "of all weights", true},
        Figure{&F::config, "config", Quantity::text, Adds::latest, "the configuration's file"},
        Figure{&F::set, "set", Quantity::text, Adds::latest, "keys over the configuration's"},
        Figure{&F::capacity, "capacity", Quantity::text, Adds::latest, "of the first tier, as configured",
               true},
        Figure{&F::predictor, "predictor", Quantity::text, Adds::latest, "name of the strategy", true},
        Figure{&F::quantizer, "quantizer", Quantity::text, Adds::latest, "name of the strategy", true},
        Figure{&F::cache, "cache", Quantity::text, Adds::latest, "name of the strategy", true},
        Figure{&F::balancer, "balancer", Quantity::text, Adds::latest, "name of the strategy", true},
        Figure{&F::prefetch, "prefetch", Quantity::flag, Adds::latest, "reads ahead", true},
        Figure{&F::activations, "activations", Quantity::text, Adds::latest, "int8 or f32", true},
        Figure{&F::kv, "kv", Quantity::text, Adds::latest, "encoding of keys and values", true},
        Figure{&F::backend, "backend", Quantity::text, Adds::latest, "of the tiers", true},
        Figure{&F::clock, "clock", Quantity::text, Adds::latest, "wall or model", true},
        Figure{&F::gap_bytes, "gap_bytes", Quantity::bytes, Adds::latest, "that a read passes over", true},
        Figure{&F::gap_from, "gap_from", Quantity::text, Adds::latest, "origin of gap_bytes", true},
        Figure{&F::kernels, "kernels", Quantity::text, Adds::latest, "of the processor", true},
        Figure{&F::threads, "threads", Quantity::count, Adds::latest, "that compute", true},
        Figure{&F::context, "context", Quantity::tokens, Adds::latest, "positions", true},
        Figure{&F::prefill_chunk, "prefill_chunk", Quantity::tokens, Adds::latest, "most of a step", true},
        Figure{&F::device, "device", Quantity::text, Adds::latest, "interface to the disk", true},
        Figure{&F::cache_state, "cache_state", Quantity::text, Adds::latest, "use of the page cache", true},
        Figure{&F::text, "text", Quantity::parts, Adds::latest, "that decoding continues", true},
        Figure{&F::uncounted_tokens, "uncounted_tokens", Quantity::tokens, Adds::latest, "before a block",
               true},
        Figure{&F::seed, "seed", Quantity::count, Adds::latest, "of the tokens", true},
        Figure{&F::block_seconds, "block_seconds", Quantity::seconds, Adds::latest, "least of a block", true},
        Figure{&F::warmup_seconds, "warmup_seconds", Quantity::seconds, Adds::latest, "before blocks", true},
        Figure{&F::budget, "budget", Quantity::parts, Adds::latest, "memory of all tiers"},
        Figure{&F::memory, "memory", Quantity::parts, Adds::latest, "of the process, without a peer"});
  }
};

// The limit of decoding by the machine's bandwidths (limit.h).
struct BenchLimitFigures {
  double tokens_per_second = 0, flash_ms = 0, memory_ms = 0;
  double must_read_bytes = 0, weight_bytes = 0, share_of_memory_bandwidth = 0;
  bool terms_within_20_percent = false;
  Summary ratio;

  static constexpr auto figures() {
    using F = BenchLimitFigures;
    return std::tuple(
        Figure{&F::tokens_per_second, "tokens_per_second", Quantity::tokens_per_second, Adds::latest,
               "at most"},
        Figure{&F::ratio, "ratio", Quantity::ratio, Adds::latest, "of the rate to the limit"},
        Figure{&F::flash_ms, "flash_ms", Quantity::ms, Adds::latest, "reads of must_read_bytes"},
        Figure{&F::memory_ms, "memory_ms", Quantity::ms, Adds::latest, "reads of weight_bytes"},
        Figure{&F::terms_within_20_percent, "terms_within_20_percent", Quantity::flag, Adds::latest,
               "the lesser time is close to the greater"},
        Figure{&F::must_read_bytes, "must_read_bytes", Quantity::bytes, Adds::latest, "kept in no memory"},
        Figure{&F::weight_bytes, "weight_bytes", Quantity::bytes, Adds::latest, "that computing reads"},
        Figure{&F::share_of_memory_bandwidth, "share_of_memory_bandwidth", Quantity::share, Adds::latest,
               "used by weight_bytes"});
  }
};

struct TokenFigures {
  double step_ms = 0, compute_ms = 0, stall_ms = 0, predictor_ms = 0, reading_ms = 0;
  double management_ms = 0, checksum_ms = 0, io_ms = 0;
  double wanted_bytes = 0, read_bytes = 0, reads = 0, bytes_per_read = 0, dram_bytes = 0;
  double messages = 0, handovers_per_layer = 0, kernel_overhead_percent = 0;

  static constexpr auto figures() {
    using F = TokenFigures;
    return std::tuple(
        Figure{&F::step_ms, "step_ms", Quantity::ms, Adds::latest, "whole"},
        Figure{&F::compute_ms, "compute_ms", Quantity::ms, Adds::latest, "with a unit computing"},
        Figure{&F::stall_ms, "stall_ms", Quantity::ms, Adds::latest, "waiting for bytes"},
        Figure{&F::predictor_ms, "predictor_ms", Quantity::ms, Adds::latest, "in the predictor"},
        Figure{&F::reading_ms, "reading_ms", Quantity::ms, Adds::latest, "in the flash agent"},
        Figure{&F::management_ms, "management_ms", Quantity::ms, Adds::latest, "in kernel and strategies"},
        Figure{&F::checksum_ms, "checksum_ms", Quantity::ms, Adds::latest, "verifying reads"},
        Figure{&F::io_ms, "io_ms", Quantity::ms, Adds::latest, "with a read in flight"},
        Figure{&F::wanted_bytes, "wanted_bytes", Quantity::bytes, Adds::latest, "of flash"},
        Figure{&F::read_bytes, "read_bytes", Quantity::bytes, Adds::latest, "delivered by the device"},
        Figure{&F::reads, "reads", Quantity::count, Adds::latest, "given to the device"},
        Figure{&F::bytes_per_read, "bytes_per_read", Quantity::bytes, Adds::latest, "of the device"},
        Figure{&F::dram_bytes, "dram_bytes", Quantity::bytes, Adds::latest, "of resident weights"},
        Figure{&F::messages, "messages", Quantity::count, Adds::latest, "to agents"},
        Figure{&F::handovers_per_layer, "handovers_per_layer", Quantity::count, Adds::latest,
               "to parked threads"},
        Figure{&F::kernel_overhead_percent, "kernel_overhead_percent", Quantity::percent, Adds::latest,
               "without computing and waiting"});
  }
};

struct HeldFigures {
  double bytes = 0, weight_bytes = 0;

  static constexpr auto figures() {
    using F = HeldFigures;
    return std::tuple(Figure{&F::bytes, "bytes", Quantity::bytes, Adds::latest, "without empty slots"},
                      Figure{&F::weight_bytes, "weight_bytes", Quantity::bytes, Adds::latest, "of these"});
  }
};

struct BenchEnergyFigures {
  std::string described_by;
  std::vector<std::string> not_counted;
  double joules_per_token = 0, grams_per_token = 0, embodied_grams_per_token = 0;
  std::map<std::string, double> watts;
  std::map<std::string, std::string> sources;

  static constexpr auto figures() {
    using F = BenchEnergyFigures;
    return std::tuple(
        Figure{&F::described_by, "described_by", Quantity::text, Adds::latest, "file of the power"},
        Figure{&F::not_counted, "not_counted", Quantity::text, Adds::latest, "parts, and why"},
        Figure{&F::joules_per_token, "joules_per_token", Quantity::joules, Adds::latest, "of all parts"},
        Figure{&F::grams_per_token, "grams_per_token", Quantity::grams, Adds::latest, "of CO2"},
        Figure{&F::embodied_grams_per_token, "embodied_grams_per_token", Quantity::grams, Adds::latest,
               "of it"},
        Figure{&F::watts, "watts", Quantity::watts, Adds::latest, "by part"},
        Figure{&F::sources, "sources", Quantity::text, Adds::latest, "by part: its meter, or modelled"});
  }
};

struct MissedFigures {
  double recall = 0, precision = 0, missed_mass = 0;

  static constexpr auto figures() {
    using F = MissedFigures;
    return std::tuple(
        Figure{&F::recall, "recall", Quantity::share, Adds::latest, "of the active neurons"},
        Figure{&F::precision, "precision", Quantity::share, Adds::latest, "of the predicted neurons"},
        Figure{&F::missed_mass, "missed_mass", Quantity::share, Adds::latest, "of the contributions"});
  }
};

// Means over the sites whose neurons are predicted.
struct BenchPredictionFigures {
  double used_share = 0;
  std::optional<MissedFigures> loss;

  static constexpr auto figures() {
    using F = BenchPredictionFigures;
    return std::tuple(Figure{&F::used_share, "used_share", Quantity::share, Adds::latest, "of the neurons"},
                      Figure{&F::loss, "loss", Quantity::parts, Adds::latest, "null: not measured", true});
  }
};

// One block of ours, and the peer's run beside it.
struct SampleFigures {
  uint64_t tokens = 0;
  double seconds = 0, tokens_per_second = 0, flash_bytes_per_second = 0, memory_bytes_per_second = 0;
  std::optional<double> peer_tokens_per_second, peer_seconds, peer_flash_bytes_per_second;

  static constexpr auto figures() {
    using F = SampleFigures;
    constexpr auto kTokens = Quantity::tokens_per_second, kBytes = Quantity::bytes_per_second;
    return std::tuple(
        Figure{&F::tokens, "tokens", Quantity::tokens, Adds::latest, "counted"},
        Figure{&F::seconds, "seconds", Quantity::seconds, Adds::latest, "of the block"},
        Figure{&F::tokens_per_second, "tokens_per_second", kTokens, Adds::latest, "ours"},
        Figure{&F::flash_bytes_per_second, "flash_bytes_per_second", kBytes, Adds::latest, "of the disk"},
        Figure{&F::memory_bytes_per_second, "memory_bytes_per_second", kBytes, Adds::latest, "of memory"},
        Figure{&F::peer_tokens_per_second, "peer_tokens_per_second", kTokens, Adds::latest, "the peer's"},
        Figure{&F::peer_seconds, "peer_seconds", Quantity::seconds, Adds::latest, "of its whole command"},
        Figure{&F::peer_flash_bytes_per_second, "peer_flash_bytes_per_second", kBytes, Adds::latest,
               "of the disk, beside the peer"});
  }
};

struct TestFigures {
  std::string test;
  Summary tokens_per_second, flash_bytes_per_second, memory_bytes_per_second;
  uint64_t blocks = 0, repeated = 0, strays_kept = 0;
  std::optional<BenchLimitFigures> limit;
  TokenFigures per_token;
  HeldFigures memory;
  std::map<std::string, double> cache;
  std::optional<BenchEnergyFigures> energy;
  std::optional<BenchPredictionFigures> prediction;
  std::vector<SampleFigures> samples;

  static constexpr auto figures() {
    using F = TestFigures;
    constexpr auto kTokens = Quantity::tokens_per_second, kBytes = Quantity::bytes_per_second;
    return std::tuple(
        Figure{&F::test, "test", Quantity::text, Adds::latest, "pp: prompt, tg: decoding; and its tokens"},
        Figure{&F::tokens_per_second, "tokens_per_second", kTokens, Adds::latest, "of a block"},
        Figure{&F::blocks, "blocks", Quantity::count, Adds::latest, "that count"},
        Figure{&F::repeated, "repeated", Quantity::count, Adds::latest,
               "blocks during which the disk varied"},
        Figure{&F::strays_kept, "strays_kept", Quantity::count, Adds::latest, "such blocks that count"},
        Figure{&F::flash_bytes_per_second, "flash_bytes_per_second", kBytes, Adds::latest, "of the disk"},
        Figure{&F::memory_bytes_per_second, "memory_bytes_per_second", kBytes, Adds::latest, "of memory"},
        Figure{&F::limit, "limit", Quantity::parts, Adds::latest, "by the bandwidths; null for a prompt",
               true},
        Figure{&F::per_token, "per_token", Quantity::parts, Adds::latest, "its time and bytes"},
        Figure{&F::memory, "memory", Quantity::parts, Adds::latest, "held at the end of a block"},
        Figure{&F::cache, "cache", Quantity::count, Adds::latest, "its gauges at the end of a block"},
        Figure{&F::energy, "energy", Quantity::parts, Adds::latest, "null: the power is not known", true},
        Figure{&F::prediction, "prediction", Quantity::parts, Adds::latest, "null: nothing predicted", true},
        Figure{&F::samples, "samples", Quantity::parts, Adds::latest, "the blocks that count"});
  }
};

struct PeerFigures {
  std::string command, test;
  uint64_t rounds = 0, our_bytes_beside_it = 0;
  double ours_tokens_per_second = 0, ratio = 0;
  Summary tokens_per_second;
  bool kept_in_memory = false;

  static constexpr auto figures() {
    using F = PeerFigures;
    constexpr auto kTokens = Quantity::tokens_per_second;
    return std::tuple(
        Figure{&F::command, "command", Quantity::text, Adds::latest, "of the shell"},
        Figure{&F::test, "test", Quantity::text, Adds::latest, "the name of ours"},
        Figure{&F::rounds, "rounds", Quantity::count, Adds::latest, "that count"},
        Figure{&F::ours_tokens_per_second, "ours_tokens_per_second", kTokens, Adds::latest, "of a block"},
        Figure{&F::tokens_per_second, "tokens_per_second", kTokens, Adds::latest, "the peer's"},
        Figure{&F::ratio, "ratio", Quantity::ratio, Adds::latest, "of ours to the peer's"},
        Figure{&F::kept_in_memory, "kept_in_memory", Quantity::flag, Adds::latest, "our model, meanwhile"},
        Figure{&F::our_bytes_beside_it, "our_bytes_beside_it", Quantity::bytes, Adds::latest, "at most"});
  }
};

struct BenchFigures {
  BenchRunFigures run;
  std::vector<TestFigures> tests;
  std::optional<PeerFigures> peer;

  static constexpr auto figures() {
    using F = BenchFigures;
    return std::tuple(Figure{&F::run, "run", Quantity::parts, Adds::latest, "model, configuration, machine"},
                      Figure{&F::tests, "tests", Quantity::parts, Adds::latest, "in their order"},
                      Figure{&F::peer, "peer", Quantity::parts, Adds::latest, "of the last test", true});
  }
};

}  // namespace tierd
