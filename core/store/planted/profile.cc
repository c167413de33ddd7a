#include "core/store/planted/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>

#include "core/model/named_toml.h"
#include "core/model/shape_file.h"

namespace tierd {
namespace {

constexpr uint32_t kMostRank = 1u << 16;
constexpr double kLeastShare = 1e-4;  // smaller ones are nothing in a layer of some thousand neurons

std::filesystem::path profiles_folder() {
  return shapes_folder() / "planted";
}

// Reads keys of sections, remembers the first error and what was known.
class ProfileReader {
 public:
  ProfileReader(const toml::table& table, std::string file) : table_(table), file_(std::move(file)) {}

  void section(std::string_view name) {
    section_ = name;
    sections_.push_back(name);
    keys_.clear();
    const toml::node* node = table_.get(name);
    fields_ = node == nullptr ? nullptr : node->as_table();
    if (fields_ == nullptr) fail(node, fmt::format("the section [{}] is missing", name));
  }

  void number(std::string_view key, double& field, double least, double most) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const auto value = node->value<double>();
    if (!node->is_number() || !value || !(*value >= least && *value <= most))
      return fail(node, fmt::format("{} must be a number from {} to {}", key, least, most));
    field = *value;
  }

  void number(std::string_view key, uint32_t& field, uint32_t least, uint32_t most) {
    const toml::node* node = find(key);
    if (node == nullptr) return;
    const int64_t value = node->is_integer() ? node->as_integer()->get() : -1;
    if (value < least || value > most)
      return fail(node, fmt::format("{} must be a whole number from {} to {}", key, least, most));
    field = static_cast<uint32_t>(value);
  }

  void end_section() {
    if (fields_ == nullptr) return;
    for (const auto& [key, node] : *fields_) {
      if (!is_one_of(keys_, key.str())) {
        fail(&node, fmt::format("unknown key '{}'; the keys of [{}] are {}", key.str(), section_,
                                fmt::join(keys_, ", ")));
      }
    }
  }

  Status end() {
    for (const auto& [key, node] : table_) {
      if (!is_one_of(sections_, key.str())) {
        fail(&node, fmt::format("unknown section '{}'; the sections of a profile are {}", key.str(),
                                fmt::join(sections_, ", ")));
      }
    }
    return status_;
  }

 private:
  static bool is_one_of(const std::vector<std::string_view>& known, std::string_view key) {
    return std::find(known.begin(), known.end(), key) != known.end();
  }
  const toml::node* find(std::string_view key) {
    keys_.push_back(key);
    if (fields_ == nullptr) return nullptr;
    const toml::node* node = fields_->get(key);
    if (node == nullptr) fail(fields_, fmt::format("{} is missing", key));
    return node;
  }
  void fail(const toml::node* node, std::string detail) {
    if (!status_.ok()) return;
    std::string origin = node == nullptr ? file_ : fmt::format("{}:{}", file_, node->source().begin.line);
    status_ = Error{Code::invalid_argument, std::move(origin), std::move(detail)};
  }

  const toml::table& table_;
  std::string file_;
  std::string_view section_;
  const toml::table* fields_ = nullptr;
  std::vector<std::string_view> sections_;
  std::vector<std::string_view> keys_;  // of the section
  Status status_;
};

// What holds between keys, and is needed for thresholds to exist.
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

std::vector<std::string> known_planted_profiles() {
  return toml_names(profiles_folder());
}

Result<PlantedProfile> read_planted_profile(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_named_toml(profiles_folder(), name, "sparsity profile"));
  PlantedProfile p;
  p.name = file.path.stem().string();
  ProfileReader reader(file.table, file.path.string());
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
