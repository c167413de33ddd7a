#include "tools/lab/activity/profile.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/named_toml.h"
#include "core/base/toml_fields.h"
#include "core/model/shape_file.h"

namespace tierd {
namespace {

// The range in which rate_table.h is exact enough. No paper reports flatter tails than a tenth of a neuron.
constexpr double kLeastExponent = 0.05;
constexpr double kMostExponent = 100;
constexpr uint32_t kMostBlocks = 1u << 12;
constexpr double kMostMean = 0.95;  // of a layer's rates

std::filesystem::path profiles_folder() {
  return shapes_folder().parent_path() / "activity";
}

// Returns a layer's relative mean, before all layers are scaled.
double share_at(const DepthShares& depth, double at) {
  return at < 0.5 ? depth.first + (depth.middle - depth.first) * 2 * at
                  : depth.middle + (depth.last - depth.middle) * (2 * at - 1);
}

}  // namespace

std::vector<std::string> known_activity_profiles() {
  return toml_names(profiles_folder());
}

Result<ActivityProfile> read_activity_profile(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_named_toml(profiles_folder(), name, "activity profile"));
  ActivityProfile p;
  p.name = file.path.stem().string();
  TomlFields fields(file.table, file.path.string());
  TomlFields rates = fields.table("rates");
  p.rates.a = rates.number("a", kLeastExponent, kMostExponent);
  p.rates.b = rates.number("b", kLeastExponent, kMostExponent);
  rates.end();
  TomlFields time = fields.table("time");
  p.lambda = time.number("lambda", 0, 1);
  time.end();
  TomlFields text = fields.table("text");
  p.chi = text.number("chi", 0, 1);
  p.eta = text.number("eta", 0, 1);
  p.blocks = text.whole("blocks", 1, kMostBlocks);
  text.end();
  TomlFields layers = fields.table("layers");
  p.kappa = layers.number("kappa", 0, 1);
  p.shift = layers.number("shift", 0, 0.5);
  layers.end();
  if (fields.has("depth")) {
    TomlFields of_depth = fields.table("depth");
    DepthShares& depth = p.depth.emplace();
    depth.first = of_depth.number("first", 1e-4, 1e4);
    depth.middle = of_depth.number("middle", 1e-4, 1e4);
    depth.last = of_depth.number("last", 1e-4, 1e4);
    of_depth.end();
  }
  if (fields.has("hidden")) {
    TomlFields hidden = fields.table("hidden");
    p.cosine = hidden.number("cosine", 0, 1);
    hidden.end();
  }
  fields.end();
  TIERD_TRY(fields.status());
  return p;
}

Result<std::vector<BetaRates>> layer_rates(const ActivityProfile& profile, uint32_t n_layers, bool by_depth) {
  std::vector<BetaRates> rates(n_layers, profile.rates);
  if (!by_depth) return rates;
  if (!profile.depth)
    return Error{Code::invalid_argument, profile.name,
                 "has no table [depth], so all of its layers are alike"};
  std::vector<double> shares;
  double sum = 0;
  for (uint32_t l = 0; l < n_layers; ++l)
    sum += shares.emplace_back(share_at(*profile.depth, n_layers == 1 ? 0 : l / (n_layers - 1.0)));
  const double all = profile.rates.a + profile.rates.b;
  for (uint32_t l = 0; l < n_layers; ++l) {
    const double mean = profile.rates.a / all * shares[l] * n_layers / sum;
    if (mean > kMostMean || all * mean < kLeastExponent) {
      return Error{Code::invalid_argument, profile.name,
                   fmt::format("[depth] makes {:.1f} % of layer {} active, expected {:.1f} to {:.1f} %",
                               100 * mean, l, 100 * kLeastExponent / all, 100 * kMostMean)};
    }
    rates[l] = {all * mean, all * (1 - mean)};
  }
  return rates;
}

}  // namespace tierd
