#include "tools/tierd/encoding_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <vector>

#include "core/store/column_source.h"
#include "core/store/encoding_error.h"

namespace tierd {
namespace {

using nlohmann::json;

struct Anew {
  std::vector<std::string> sites;  // in the order in which a step computes them
  float error = 0;
};

// Returns the encodings that the parts of a site have in the model's file.
std::string in_file(const TensorSource& source, const StoredSite& site) {
  std::set<std::string> names;
  for (const SitePart& part : site.parts)
    names.emplace(name(tensors_of(source, site, part).front()->encoding));
  return fmt::format("{}", fmt::join(names, "/"));
}
std::string in_store(const StoredSite& site) {
  std::set<std::string> names;
  for (const Encoding encoding : site.encodings) names.emplace(name(encoding));
  return fmt::format("{}", fmt::join(names, "/"));
}

// Sites by their encodings in the file and in the store.
using Ways = std::map<std::pair<std::string, std::string>, Anew>;

void add(Ways& ways, const std::string& from, const std::string& to, const StoredSite& site, float error) {
  Anew& way = ways[{from, to}];
  const std::string group(name(site.group));
  if (std::ranges::find(way.sites, group) == way.sites.end()) way.sites.push_back(group);
  way.error = std::max(way.error, error);
}

json to_json(const Ways& ways, bool sampled) {
  json list = json::array();
  for (const auto& [encodings, way] : ways) {
    list.push_back({{"sites", way.sites},
                    {"from", encodings.first.empty() ? json(nullptr) : json(encodings.first)},
                    {"to", encodings.second},
                    {"error", way.error},
                    {"sampled", sampled}});
  }
  return list;
}

}  // namespace

Result<json> encodings_json(const RunPlan& plan) {
  if (plan.source == nullptr) return stored_anew_json(plan.store);
  const TensorSource& source = *plan.source;
  Ways ways;
  std::set<std::tuple<std::string, std::string, OpGroup>> sampled;
  for (const StoredSite* stored : plan.store.manifest().stored()) {
    const StoredSite& site = *stored;
    if (!encoded_anew(source, site)) continue;
    const std::string from = in_file(source, site);
    const std::string to = in_store(site);
    float error = 0;
    if (sampled.emplace(from, to, site.group).second) {
      TIERD_ASSIGN(error, sampled_encoding_error(source, site));
    }
    add(ways, from, to, site, error);
  }
  return to_json(ways, true);
}

json stored_anew_json(const Store& store) {
  Ways ways;
  for (const StoredSite* site : store.manifest().stored()) {
    if (site->encoding_error) add(ways, "", in_store(*site), *site, *site->encoding_error);
  }
  return to_json(ways, false);
}

std::string encodings_text(const json& encodings) {
  std::string text;
  for (const json& entry : encodings) {
    text += fmt::format("{}{}{} as {}, relative error {:.2g}{}", text.empty() ? "" : "; ",
                        fmt::join(entry["sites"].get<std::vector<std::string>>(), ", "),
                        entry["from"].is_null() ? "" : " from " + entry["from"].get<std::string>(),
                        entry["to"].get<std::string>(), entry["error"].get<double>(),
                        entry["sampled"].get<bool>() ? " in a sample" : "");
  }
  return text;
}

}  // namespace tierd
