#include "tools/tierd/encoding_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/store/column_source.h"
#include "core/store/encoding_error.h"

namespace tierd {
namespace {

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
using Ways = std::map<std::pair<std::string, std::string>, EncodedFigures>;

void add(Ways& ways, const EncodedFigures& one, const StoredSite& site) {
  EncodedFigures& way = ways.emplace(std::pair(one.from, one.to), one).first->second;
  const std::string group(name(site.group));
  if (std::ranges::find(way.sites, group) == way.sites.end()) way.sites.push_back(group);
  way.error = std::max(way.error, one.error);
}

std::vector<EncodedFigures> list_of(Ways ways) {
  std::vector<EncodedFigures> list;
  for (auto& [encodings, way] : ways) list.push_back(std::move(way));
  return list;
}

}  // namespace

Result<std::vector<EncodedFigures>> encoding_figures(const RunPlan& plan) {
  if (plan.source == nullptr) return stored_anew(plan.store);
  const TensorSource& source = *plan.source;
  Ways ways;
  std::set<std::tuple<std::string, std::string, OpGroup>> sampled;
  for (const StoredSite* stored : plan.store.manifest().stored()) {
    const StoredSite& site = *stored;
    if (!encoded_anew(source, site)) continue;
    EncodedFigures one{{}, in_file(source, site), in_store(site), 0, true};
    if (sampled.emplace(one.from, one.to, site.group).second) {
      TIERD_ASSIGN(one.error, sampled_encoding_error(source, site));
    }
    add(ways, one, site);
  }
  return list_of(std::move(ways));
}

std::vector<EncodedFigures> stored_anew(const Store& store) {
  Ways ways;
  for (const StoredSite* site : store.manifest().stored()) {
    if (site->encoding_error) add(ways, {{}, "", in_store(*site), *site->encoding_error, false}, *site);
  }
  return list_of(std::move(ways));
}

std::string encodings_text(const std::vector<EncodedFigures>& encodings) {
  std::string text;
  for (const EncodedFigures& entry : encodings) {
    text += fmt::format("{}{}{} as {}, relative error {:.2g}{}", text.empty() ? "" : "; ",
                        fmt::join(entry.sites, ", "), entry.from.empty() ? "" : " from " + entry.from,
                        entry.to, entry.error, entry.sampled ? " in a sample" : "");
  }
  return text;
}

}  // namespace tierd
