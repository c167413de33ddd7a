#include "tools/lab/planted/channel_rates.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {
namespace {

struct SiteRates {
  std::string site;
  std::vector<float> rates;
};

// Returns the rates of the input of `o`: each query head has those of its KV head.
std::vector<float> of_heads(const ModelConfig& config, const std::vector<float>& values) {
  const uint32_t sharing = config.n_heads / config.n_kv_heads;
  std::vector<float> rates;
  for (uint32_t channel = 0; channel < config.q_dim(); ++channel) {
    const uint32_t head = channel / config.head_dim / sharing;
    rates.push_back(values[head * config.head_dim + channel % config.head_dim]);
  }
  return rates;
}

std::vector<SiteRates> rates_of_layer(const ChannelSource& source, uint32_t layer) {
  const ModelConfig& config = source.config();
  const std::string prefix = fmt::format("layers.{}.", layer);
  const std::vector<float> normed = source.planted_rates(prefix + "ffn_norm");
  std::vector<SiteRates> all = {{prefix + "qkv", source.planted_rates(prefix + "attn_norm")},
                                {prefix + "o", of_heads(config, source.planted_rates(prefix + "v"))}};
  const auto add_network = [&](const std::string& of) {
    all.push_back({of + "up", normed});
    all.push_back({of + "down", source.planted_rates(of + "up")});
  };
  if (!config.is_mixture()) add_network(prefix);
  for (uint32_t e = 0; e < config.n_experts; ++e) add_network(fmt::format("{}experts.{}.", prefix, e));
  return all;
}

}  // namespace

Status write_channel_rates(const ChannelSource& source, const std::string& path) {
  std::vector<SiteRates> all;
  for (uint32_t layer = 0; layer < source.config().n_layers; ++layer) {
    for (SiteRates& site : rates_of_layer(source, layer)) all.push_back(std::move(site));
  }
  std::vector<SafetensorsEntry> entries;
  for (const SiteRates& one : all) entries.push_back({one.site + ".rates", "F32", {one.rates.size()}});
  TIERD_ASSIGN(SafetensorsWriter writer,
               SafetensorsWriter::create(path, entries, {{kMadeFor, shape_text(source.config())}}));
  for (const SiteRates& one : all) TIERD_TRY(writer.append(std::as_bytes(std::span(one.rates))));
  return writer.finish();
}

}  // namespace tierd
