#include "tools/tier/compare/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/store/source.h"
#include "core/system/cores.h"

namespace tierd {
namespace {

constexpr uint32_t kStepTokens = 64;
constexpr std::string_view kNoPublished = "none";
constexpr std::string_view kShape = ".toml";  // a model without weights

// Returns a configuration with everything in one DRAM tier, without a model.
Config resident(const Config& subject) {
  Config config;
  config.tokenizer = subject.tokenizer;
  // The references compute beside the subject.
  config.threads = std::max(1u, (subject.threads != 0 ? subject.threads : available_cores()) / 2);
  config.context = subject.context;
  config.ubatch = kStepTokens;
  config.kv = subject.kv;
  config.seed = subject.seed;
  config.bind = false;  // else to the core of the subject's thread
  config.activations = "f32";
  config.kernels = subject.kernels;
  config.plugin_path = subject.plugin_path;
  config.plugin_deadline_ms = subject.plugin_deadline_ms;
  return config;
}

}  // namespace

bool keeps_values(const Manifest& manifest) {
  return std::ranges::none_of(manifest.sites,
                              [](const StoredSite& site) { return site.encoding_error.has_value(); });
}

Config store_reference(const Config& subject) {
  Config config = resident(subject);
  config.model = subject.model;
  config.zeros = subject.zeros;
  config.layout = subject.layout;
  config.layer_group = subject.layer_group;
  config.experts = subject.experts;
  config.order = subject.order;
  config.encoding = subject.encoding;
  config.head_encoding = subject.head_encoding;
  config.bundling = subject.bundling;
  config.compression = subject.compression;
  config.editions = subject.editions;
  config.codec = subject.codec;
  return config;
}

Published published_reference(const Config& subject, const RunPlan& plan, const std::string& named) {
  if (named == kNoPublished) return {std::nullopt, "--published none"};
  Config config = resident(subject);
  config.model = named.empty() ? subject.model : named;
  if (!named.empty()) return {std::move(config), ""};
  const Manifest& manifest = plan.store.manifest();
  if (!is_store(subject.model)) {
    if (keeps_values(manifest)) return {std::nullopt, "its values are those of the store"};
    return {std::move(config), ""};
  }
  config.model = manifest.provenance.source;
  if (config.model.ends_with(kShape))
    return {std::nullopt, fmt::format("the weights of {} were generated, not published", subject.model)};
  std::error_code unknown;
  if (std::filesystem::exists(config.model, unknown)) return {std::move(config), ""};
  return {std::nullopt, fmt::format("the store {} was made of {}, which is not there; --published names it",
                                    subject.model, config.model)};
}

}  // namespace tierd
