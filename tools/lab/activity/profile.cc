#include "tools/lab/activity/profile.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/base/named_toml.h"
#include "core/base/toml_sections.h"
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
  TomlSections sections(file.table, file.path.string());
  sections.section("rates");
  sections.number("a", p.rates.a, kLeastExponent, kMostExponent);
  sections.number("b", p.rates.b, kLeastExponent, kMostExponent);
  sections.end_section();
  sections.section("time");
  sections.number("lambda", p.lambda, 0.0, 1.0);
  sections.end_section();
  sections.section("text");
  sections.number("chi", p.chi, 0.0, 1.0);
  sections.number("eta", p.eta, 0.0, 1.0);
  sections.number("blocks", p.blocks, 1u, kMostBlocks);
  sections.end_section();
  sections.section("layers");
  sections.number("kappa", p.kappa, 0.0, 1.0);
  sections.number("shift", p.shift, 0.0, 0.5);
  sections.end_section();
  if (sections.optional_section("depth")) {
    DepthShares& depth = p.depth.emplace();
    sections.number("first", depth.first, 1e-4, 1e4);
    sections.number("middle", depth.middle, 1e-4, 1e4);
    sections.number("last", depth.last, 1e-4, 1e4);
    sections.end_section();
  }
  if (sections.optional_section("hidden")) {
    sections.number("cosine", p.cosine.emplace(), 0.0, 1.0);
    sections.end_section();
  }
  TIERD_TRY(sections.end());
  return p;
}

Result<std::vector<BetaRates>> layer_rates(const ActivityProfile& profile, uint32_t n_layers, bool by_depth) {
  std::vector<BetaRates> rates(n_layers, profile.rates);
  if (!by_depth) return rates;
  if (!profile.depth)
    return Error{Code::invalid_argument, profile.name, "has no [depth], all of its layers are alike"};
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
