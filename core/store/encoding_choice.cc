#include "core/store/encoding_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>

namespace tierd {
namespace {

constexpr std::string_view kEditions =
    "editions";  // the flag of tier-convert; model.editions of a configuration

void store_all_as(StoredSite& site, Encoding encoding) {
  site.encodings = Encodings(site.parts.size(), encoding);
}

// Gives each part the source's encoding, or f32 if the experts differ in it.
Status take_over_experts(StoredSite& site, const TensorTable& tensors) {
  for (size_t i = 0; i < site.parts.size(); ++i) {
    const SitePart& part = site.parts[i];
    for (uint32_t expert = 0; expert < site.neurons(); ++expert) {
      TIERD_ASSIGN(const TensorInfo* tensor,
                   tensors.get(tensor_of_expert(part, expert), part.rows, site.columns_of(i)));
      if (expert == 0) site.encodings[i] = tensor->encoding;
      if (tensor->encoding != site.encodings[i]) site.encodings[i] = Encoding::f32;
    }
  }
  return {};
}

// Gives each part the encoding of its tensor in the source.
Status take_over(StoredSite& site, const TensorTable& tensors) {
  if (is_cut_into<Experts>(site.cut)) return take_over_experts(site, tensors);
  for (size_t i = 0; i < site.parts.size(); ++i) {
    const SitePart& part = site.parts[i];
    const bool down = is_cut_into<Bundles>(site.cut) && site.is_column(i);  // its columns are neurons
    TIERD_ASSIGN(const TensorInfo* tensor, tensors.get(part.tensor, down ? outputs(site.cut) : part.rows,
                                                       down ? part.rows : inputs(site.cut)));
    site.encodings[i] = tensor->encoding;
  }
  return {};
}

std::optional<Encoding> asked_for(const StoredSite& site, const WriteOptions& options) {
  return site.layer == kNoLayer ? options.head_encoding : options.encoding;
}

Status store_as_asked(StoredSite& site, Encoding encoding) {
  if (site.n_column_parts() != 0 && !has_columns(encoding)) {
    return Error{Code::unsupported, site.name,
                 fmt::format("columns cannot be {}, which has blocks of {} along the rows; expected f32, "
                             "f16, bf16, q8_0 or q4_0, or layout row",
                             name(encoding), block_values(encoding))};
  }
  for (size_t part = 0; part < site.parts.size(); ++part) {
    // Columns of channels are padded to whole blocks.
    if (is_cut_into<Columns>(site.cut) || site.columns_of(part) % block_values(encoding) == 0) continue;
    return Error{Code::unsupported, site.name,
                 fmt::format("rows of {} columns cannot be {}, which needs a multiple of {}; keep the "
                             "encodings of the model with --encoding source (--set model.encoding=source)",
                             site.columns_of(part), name(encoding), block_values(encoding))};
  }
  store_all_as(site, encoding);
  return {};
}

// Returns one encoding for the columns of all these sites, close to the source's in bits.
Encoding of_columns(std::span<StoredSite* const> sites) {
  std::vector<Encoding> found;
  for (const StoredSite* site : sites) {
    found.insert(found.end(), site->encodings.begin(), site->encodings.end());
  }
  const bool same = std::ranges::count(found, found.front()) == std::ssize(found);
  if (same && has_columns(found.front())) return found.front();
  if (!std::ranges::all_of(found, is_quantized)) return Encoding::f32;
  const auto four_bits = [](Encoding e) { return block_bytes(e) * 8 <= block_values(e) * 5; };
  return std::ranges::any_of(found, four_bits) ? Encoding::q4_0 : Encoding::q8_0;
}

void choose(Manifest& plan, StoredSite& site) {
  if (is_cut_into<Experts>(site.cut)) return;
  std::vector<StoredSite*> together = {&site};
  if (const auto* rows = std::get_if<Rows>(&site.cut)) {
    if (site.encodings.mixed() && most_groups_together(*rows) == 0) store_all_as(site, Encoding::f32);
    return;
  }
  if (is_cut_into<Columns>(site.cut)) {
    if (!begins_layer_group(plan, site)) return;  // chosen with the first site of its group
    together = layer_group_of(plan.sites, site);
  }
  const Encoding encoding = of_columns(together);
  for (StoredSite* other : together) store_all_as(*other, encoding);
}

}  // namespace

Status choose_encodings(Manifest& plan, const TensorTable& tensors, const WriteOptions& options) {
  for (StoredSite& site : plan.sites) TIERD_TRY(take_over(site, tensors));
  for (StoredSite& site : plan.sites) {
    if (const auto asked = asked_for(site, options)) {
      const bool of_head = site.layer == kNoLayer && options.head_encoding != options.encoding;
      if (const Status stored = store_as_asked(site, *asked); !stored.ok())
        return stored.error().below(of_head ? "head_encoding" : "encoding");
    } else {
      choose(plan, site);
    }
  }
  TIERD_ASSIGN(plan.editions, editions_of(plan, options.editions, kEditions));
  return {};
}

Result<std::vector<StoredSite>> editions_of(const Manifest& plan, const std::vector<Encoding>& encodings,
                                            std::string_view origin) {
  std::vector<StoredSite> editions;
  for (uint32_t s = 0; s < plan.sites.size(); ++s) {
    if (!may_have_editions(plan.sites[s])) continue;
    for (const Encoding encoding : encodings) {
      const bool first = editions.empty() || editions.back().edition_of != s;
      const Encodings before = (first ? plan.sites[s] : editions.back()).encodings;
      StoredSite& edition = editions.emplace_back(StoredSite(plan.sites[s]));
      edition.edition_of = s;
      edition.encoding_error.reset();
      if (const Status stored = store_as_asked(edition, encoding); !stored.ok())
        return stored.error().below(origin);
      if (has_fewer_bits(edition.encodings, before)) continue;
      return Error{
          first ? Code::unsupported : Code::invalid_argument, std::string(origin),
          fmt::format(
              "{} of {} has no fewer bits than {}, {}", name(encoding), edition.name, name(before.front()),
              first ? fmt::format("the encoding of the model; store it in 16 bits with --encoding f16 "
                                  "(--set model.encoding=f16), or use one encoding with --set {}=none",
                                  origin == kEditions ? "model.editions" : origin)
                    : "the edition before it; expected each smaller than the one before, or "
                      "\"none\"")};
    }
  }
  if (!encodings.empty() && editions.empty()) {
    const bool apart = plan.layout == Layout::neuron;
    return Error{Code::unsupported, std::string(origin),
                 fmt::format("layout '{}'{} has neither bundles in one piece nor experts, and only these can "
                             "have several encodings; expected {}",
                             name(plan.layout), apart ? " with bundling 'none'" : "",
                             apart ? "bundling row-column" : "layout neuron")};
  }
  return editions;
}

Result<std::vector<Encoding>> parse_editions(std::string_view list, std::string_view origin) {
  std::vector<Encoding> encodings;
  if (list == "none") return encodings;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view word = list.substr(begin, end - begin);
    const auto encoding = by_name<Encoding>(word);
    if (!encoding) {
      return Error{Code::invalid_argument, std::string(origin),
                   fmt::format("'{}' is not an encoding; expected none, or a list such as q8_0,q4_0", word)};
    }
    encodings.push_back(*encoding);
    begin = end + 1;
  }
  return encodings;
}

bool may_have_editions(const StoredSite& site) {
  return site.pieces == 1 && (is_cut_into<Bundles>(site.cut) || is_cut_into<Experts>(site.cut));
}

bool has_fewer_bits(const Encodings& encodings, const Encodings& than) {
  for (size_t part = 0; part < encodings.size(); ++part) {
    const Encoding e = encodings[part], other = than[part];
    if (block_bytes(e) * block_values(other) >= block_bytes(other) * block_values(e)) return false;
  }
  return true;
}

uint32_t most_groups_together(const Rows& rows) {
  uint32_t groups = 0;
  for (const uint32_t stacked : std::span(rows.stacked).first(rows.stacked.size() - 1)) {
    if (stacked % kGroupRows != 0) return 0;
    groups = std::gcd(groups, stacked / kGroupRows);
  }
  return groups;
}

bool begins_layer_group(const Manifest& plan, const StoredSite& site) {
  return site.stride == 1 || site.layer % plan.layer_group == 0;
}

std::vector<StoredSite*> layer_group_of(std::vector<StoredSite>& sites, const StoredSite& first) {
  if (first.stride == 1) return {&sites[static_cast<size_t>(&first - sites.data())]};
  std::vector<StoredSite*> group;
  for (StoredSite& site : sites) {
    const bool member = is_cut_into<Columns>(site.cut) && site.group == first.group &&
                        site.layer >= first.layer && site.layer - first.layer < first.stride;
    if (member) group.push_back(&site);
  }
  return group;
}

}  // namespace tierd
