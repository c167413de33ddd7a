#include "tools/lab/planted/profile.h"

#include <utility>

#include "core/base/named_toml.h"
#include "core/base/toml_sections.h"
#include "core/model/shape_file.h"

namespace tierd {
namespace {

constexpr uint32_t kMostRank = 1u << 16;
constexpr double kLeastShare = 1e-4;  // a smaller share is less than one neuron of a layer of some thousands

// Checks conditions between keys without which no thresholds exist.
Status check(const PlantedProfile& p, const std::string& file) {
  const auto refuse = [&](std::string detail) {
    return Error{Code::invalid_argument, file, std::move(detail)};
  };
  if (p.false_negatives + p.false_positives >= 1)
    return refuse("false_negatives and false_positives together must be below 1: no predictor is worse");
  if (p.document_share + p.run_share > 1)
    return refuse("document_share and run_share together must be at most 1, of an embedding's variance");
  return {};
}

}  // namespace

std::filesystem::path planted_profiles_folder() {
  return shapes_folder() / "planted";
}

std::vector<std::string> known_planted_profiles() {
  return toml_names(planted_profiles_folder());
}

Result<PlantedProfile> read_planted_profile(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_named_toml(planted_profiles_folder(), name, "sparsity profile"));
  PlantedProfile p;
  p.name = file.path.stem().string();
  TomlSections reader(file.table, file.path.string());
  reader.section("activity");
  reader.number("first", p.first, kLeastShare, 0.5);
  reader.number("middle", p.middle, kLeastShare, 0.5);
  reader.number("last", p.last, kLeastShare, 0.5);
  reader.number("mean", p.mean, kLeastShare, 0.5);
  reader.end_section();
  reader.section("predictor");
  reader.number("false_negatives", p.false_negatives, kLeastShare, 0.9);
  reader.number("false_positives", p.false_positives, kLeastShare, 0.9);
  reader.number("threshold_spread", p.threshold_spread, 0.0, 10.0);
  reader.number("rank", p.rank, 2u, kMostRank);
  reader.number("last_rank", p.last_rank, 2u, kMostRank);
  reader.number("last_share", p.last_share, 0.0, 1.0);
  reader.end_section();
  reader.section("text");
  reader.number("document_share", p.document_share, 0.0, 1.0);
  reader.number("run_share", p.run_share, 0.0, 1.0);
  reader.number("run_length", p.run_length, 1.0, 1024.0);
  reader.end_section();
  reader.section("network");
  reader.number("norm_shift", p.norm_shift, 1e-3, 10.0);
  reader.number("ffn_variance", p.ffn_variance, 0.0, 10.0);
  reader.number("attention_variance", p.attention_variance, 0.0, 10.0);
  reader.number("score_variance", p.score_variance, 0.0, 100.0);
  reader.number("position_variance", p.position_variance, 0.0, 10.0);
  reader.end_section();
  TIERD_TRY(reader.end());
  TIERD_TRY(check(p, file.path.string()));
  return p;
}

}  // namespace tierd
