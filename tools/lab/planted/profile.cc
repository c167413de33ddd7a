#include "tools/lab/planted/profile.h"

#include <utility>

#include "core/base/named_toml.h"
#include "core/base/toml_fields.h"
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
    return refuse("false_negatives and false_positives together must be below 1");
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
  TomlFields fields(file.table, file.path.string());
  TomlFields activity = fields.table("activity");
  p.first = activity.number("first", kLeastShare, 0.5);
  p.middle = activity.number("middle", kLeastShare, 0.5);
  p.last = activity.number("last", kLeastShare, 0.5);
  p.mean = activity.number("mean", kLeastShare, 0.5);
  activity.end();
  TomlFields predictor = fields.table("predictor");
  p.false_negatives = predictor.number("false_negatives", kLeastShare, 0.9);
  p.false_positives = predictor.number("false_positives", kLeastShare, 0.9);
  p.threshold_spread = predictor.number("threshold_spread", 0, 10);
  p.rank = predictor.whole("rank", 2, kMostRank);
  p.last_rank = predictor.whole("last_rank", 2, kMostRank);
  p.last_share = predictor.number("last_share", 0, 1);
  predictor.end();
  TomlFields text = fields.table("text");
  p.document_share = text.number("document_share", 0, 1);
  p.run_share = text.number("run_share", 0, 1);
  p.run_length = text.number("run_length", 1, 1024);
  text.end();
  TomlFields network = fields.table("network");
  p.norm_shift = network.number("norm_shift", 1e-3, 10);
  p.ffn_variance = network.number("ffn_variance", 0, 10);
  p.attention_variance = network.number("attention_variance", 0, 10);
  p.score_variance = network.number("score_variance", 0, 100);
  p.position_variance = network.number("position_variance", 0, 10);
  network.end();
  fields.end();
  TIERD_TRY(fields.status());
  TIERD_TRY(check(p, file.path.string()));
  return p;
}

}  // namespace tierd
