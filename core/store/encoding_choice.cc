#include "core/store/encoding_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>

namespace tierd {
namespace {

void store_all_as(StoredSite& site, Encoding encoding) {
  site.encoding = encoding;
  for (SitePart& part : site.parts) part.encoding = encoding;
}

// Of each part the source's encoding; float32 where experts differ in it.
Status take_over_experts(StoredSite& site, const TensorTable& tensors) {
  for (SitePart& part : site.parts) {
    const uint32_t cols = &part == &site.parts.back() ? site.rows_per_neuron : site.n_in;
    for (uint32_t expert = 0; expert < site.neurons; ++expert) {
      TIERD_ASSIGN(const TensorInfo* tensor, tensors.get(tensor_of_expert(part, expert), part.rows, cols));
      if (expert == 0) part.encoding = tensor->encoding;
      if (tensor->encoding != part.encoding) part.encoding = Encoding::f32;
    }
  }
  site.encoding = site.parts.front().encoding;
  return {};
}

// The encodings of the source.
Status take_over(StoredSite& site, const TensorTable& tensors) {
  if (site.axis == Axis::expert) return take_over_experts(site, tensors);
  for (SitePart& part : site.parts) {
    const bool column_of_bundle = site.axis == Axis::neuron && &part == &site.parts.back();
    TIERD_ASSIGN(const TensorInfo* tensor, tensors.get(part.tensor, column_of_bundle ? site.n_out : part.rows,
                                                       column_of_bundle ? part.rows : site.n_in));
    part.encoding = tensor->encoding;
  }
  site.encoding = site.parts.front().encoding;
  return {};
}

std::optional<Encoding> asked_for(const StoredSite& site, const WriteOptions& options) {
  return site.layer == kNoLayer ? options.head_encoding : options.encoding;
}

Status store_as_asked(StoredSite& site, Encoding encoding) {
  const bool rows = site.axis == Axis::row || site.axis == Axis::expert;
  if (!rows && is_k_quant(encoding)) {
    return Error{
        Code::unsupported, site.name,
        fmt::format("columns cannot be {}, whose blocks of {} run along the rows; expected f32, f16, "
                    "bf16, q8_0 or q4_0, or layout row",
                    name(encoding), kSuperBlock)};
  }
  // The columns of channels are filled up to whole blocks.
  if (site.axis != Axis::channel && site.n_in % block_values(encoding) != 0) {
    return Error{Code::unsupported, site.name,
                 fmt::format("rows of {} columns cannot be {}: not a multiple of {}", site.n_in,
                             name(encoding), block_values(encoding))};
  }
  if (site.axis == Axis::expert && site.rows_per_neuron % block_values(encoding) != 0) {
    return Error{Code::unsupported, site.name,
                 fmt::format("rows of {} columns cannot be {}: not a multiple of {}", site.rows_per_neuron,
                             name(encoding), block_values(encoding))};
  }
  store_all_as(site, encoding);
  return {};
}

// Of columns of all these, in bits that come near to what the source spends.
Encoding of_columns(std::span<StoredSite* const> sites) {
  std::vector<Encoding> found;
  for (const StoredSite* site : sites) {
    for (const SitePart& part : site->parts) found.push_back(part.encoding);
  }
  const bool same = std::ranges::count(found, found.front()) == std::ssize(found);
  if (same && !is_k_quant(found.front())) return found.front();
  if (!std::ranges::all_of(found, is_quantized)) return Encoding::f32;
  const auto four_bits = [](Encoding e) { return e == Encoding::q4_0 || e == Encoding::q4_k; };
  return std::ranges::any_of(found, four_bits) ? Encoding::q4_0 : Encoding::q8_0;
}

void choose(Manifest& plan, StoredSite& site) {
  if (site.axis == Axis::expert) return;
  std::vector<StoredSite*> together = {&site};
  if (site.axis == Axis::row) {
    if (site.mixed() && most_groups_together(site) == 0) store_all_as(site, Encoding::f32);
    return;
  }
  if (site.axis == Axis::channel) {
    if (!begins_layer_group(plan, site)) return;  // chosen with the first of its group
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
      TIERD_TRY(store_as_asked(site, *asked));
    } else {
      choose(plan, site);
    }
  }
  return {};
}

uint32_t most_groups_together(const StoredSite& site) {
  uint32_t groups = 0;
  for (const SitePart& part : std::span(site.parts).first(site.parts.size() - 1)) {
    if (part.rows % kGroupRows != 0) return 0;
    groups = std::gcd(groups, part.rows / kGroupRows);
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
    const bool member = site.axis == Axis::channel && site.group == first.group &&
                        site.layer >= first.layer && site.layer - first.layer < first.stride;
    if (member) group.push_back(&site);
  }
  return group;
}

}  // namespace tierd
