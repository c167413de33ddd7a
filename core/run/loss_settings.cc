#include "core/run/loss_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/file.h"
#include "core/store/encoding_error.h"
#include "core/strategy/plugin_file.h"

namespace tierd {
namespace {

constexpr uint64_t kPiece = 4u << 20;  // bytes of one read

bool is_lossy(const StrategyChoice& choice) {
  return choice.plugin != nullptr && (choice.plugin->lossy != 0 || choice.parameters.lossy());
}

bool is_encoded_anew(const RunPlan& plan) {
  return std::ranges::any_of(plan.store.manifest().stored(), [&](const StoredSite* site) {
    return plan.source == nullptr ? site->encoding_error.has_value() : encoded_anew(*plan.source, *site);
  });
}

// Returns a checksum of the file's content. "model" means tensors of the store.
Result<std::string> content_of(const std::string& path) {
  if (path == ModelTensors::kName) return path;
  TIERD_ASSIGN(const File file, File::open(path));
  std::string pieces;
  std::vector<std::byte> piece;
  for (uint64_t at = 0; at < file.size_bytes(); at += piece.size()) {
    piece.resize(std::min(kPiece, file.size_bytes() - at));
    TIERD_TRY(file.read_exact(at, piece));
    pieces += checksum_text(checksum(piece));
  }
  return checksum_text(checksum(pieces));
}

std::string text_of(const Parameters::Value& value) {
  return std::visit([](const auto& of) { return fmt::format("{}", of); }, value);
}

// The parameters to include in a strategy's line.
enum class Which : uint8_t { lossy, all };

// Returns "predictor top-k 1.0 mask=largest sparsity=0.5", and the checksum of its tensors.
Result<std::string> line_of(std::string_view table, const StrategyChoice& choice,
                            const StrategyConfig& config, Which which) {
  std::string line = fmt::format("{} {} {}", table, choice.plugin->name, choice.plugin->version);
  for (uint32_t i = 0; i < choice.plugin->n_params; ++i) {
    const tierd_param& declared = param(*choice.plugin, i);
    if (which == Which::lossy && declared.lossy == TIERD_LOSSLESS) continue;
    const auto value = choice.parameters.values().find(std::string_view(declared.name));
    if (value != choice.parameters.values().end())
      line += fmt::format(" {}={}", declared.name, text_of(value->second));
  }
  if (!config.tensors.empty()) {
    TIERD_ASSIGN(const std::string content, content_of(config.tensors));
    line += " tensors=" + content;
  }
  return line + "\n";
}

// Returns the lines of the strategies that decide, or may decide, what is computed.
Result<std::string> strategies_text(const RunPlan& plan, Which caches) {
  const Config& config = plan.config;
  TIERD_ASSIGN(std::string text,
               line_of("predictor", plan.strategies.predictor, config.predictor, Which::lossy));
  TIERD_ASSIGN(const std::string quantizer,
               line_of("quantizer", plan.strategies.quantizer, config.quantizer, Which::lossy));
  text += quantizer;
  if (is_lossy(plan.strategies.balancer)) {
    TIERD_ASSIGN(const std::string balancer,
                 line_of("balancer", plan.strategies.balancer, config.balancer, Which::lossy));
    text += balancer;
  }
  for (const Tier& tier : plan.tiers.memories) {
    const StrategyChoice& cache = plan.strategies.cache_of(tier.config.name);
    if (caches == Which::lossy && !is_lossy(cache)) continue;
    const StrategyConfig& own = tier.config.cache.name.empty() ? config.cache : tier.config.cache;
    TIERD_ASSIGN(const std::string line, line_of(tier.config.name + " cache", cache, own, caches));
    text += line;
  }
  return text;
}

}  // namespace

bool is_lossy(const RunPlan& plan) {
  const StrategyChoices& chosen = plan.strategies;
  return is_lossy(chosen.predictor) || is_lossy(chosen.quantizer) || is_lossy(chosen.balancer) ||
         std::ranges::any_of(plan.tiers.memories,
                             [&](const Tier& tier) { return is_lossy(chosen.cache_of(tier.config.name)); }) ||
         is_encoded_anew(plan);
}

Result<LossSettings> loss_settings(const RunPlan& plan, uint32_t measure_every) {
  const Manifest& manifest = plan.store.manifest();
  const StrategyChoices& chosen = plan.strategies;
  const bool by_memory =
      chosen.predictor.parameters.lossy_by_memory() || chosen.quantizer.parameters.lossy_by_memory();
  LossSettings settings;
  settings.text =
      fmt::format("model {} {} bytes\nactivations {}\nkv {}\n", manifest.provenance.fingerprint,
                  manifest.tensor_bytes, plan.memory.model.int8_activations ? "int8" : "f32", plan.config.kv);
  TIERD_ASSIGN(const std::string strategies, strategies_text(plan, by_memory ? Which::all : Which::lossy));
  settings.text += strategies;
  // Only for a predictor that learns from firing neurons do measured passes change results.
  if (offers_heat(*chosen.predictor.plugin)) settings.text += fmt::format("measured {}\n", measure_every);
  for (size_t t = 0; t < plan.tiers.memories.size(); ++t) {
    const TierConfig& tier = plan.tiers.memories[t].config;
    if (tier.recode != "none") settings.text += fmt::format("{} recode {}\n", tier.name, tier.recode);
    if (by_memory) {
      settings.resident[tier.name] = static_cast<double>(plan.memory.tiers[t].arena) /
                                     static_cast<double>(std::max<uint64_t>(1, manifest.tensor_bytes));
    }
  }
  return settings;
}

}  // namespace tierd
