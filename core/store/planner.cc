#include "core/store/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/base/check.h"
#include "core/base/units.h"
#include "core/store/compressed_plan.h"
#include "core/store/encoding_choice.h"
#include "core/store/manifest_json.h"
#include "core/store/tensor_table.h"
#include "core/store/writer.h"
#include "core/system/memory_limits.h"

namespace tierd {
namespace {

StoredSite make_site(OpGroup group, uint32_t layer, std::vector<SitePart> parts, Cut cut) {
  StoredSite site;
  site.group = group;
  site.layer = layer;
  site.name = name(group);
  if (layer != kNoLayer) {
    const std::string prefix = fmt::format("layers.{}.", layer);
    site.name = prefix + site.name;
    for (SitePart& part : parts) part.tensor = prefix + part.tensor;
  }
  site.encodings = Encodings(parts.size(), Encoding::f32);
  site.parts = std::move(parts);
  site.cut = std::move(cut);
  return site;
}

StoredSite make_rows(OpGroup group, uint32_t layer, uint32_t n_in, std::vector<SitePart> parts) {
  Rows rows;
  rows.n_in = n_in;
  for (const SitePart& part : parts) rows.stacked.push_back(part.rows);
  return make_site(group, layer, std::move(parts), std::move(rows));
}

StoredSite make_columns(OpGroup group, uint32_t layer, uint32_t n_in, std::vector<SitePart> parts) {
  Columns columns{n_in, 0};
  for (const SitePart& part : parts) columns.n_out += part.rows;
  return make_site(group, layer, std::move(parts), columns);
}

// Returns the site of all experts of a layer.
StoredSite make_experts(const ModelConfig& config, uint32_t layer) {
  return make_site(
      OpGroup::experts, layer,
      {{"experts.*.gate", config.d_ff}, {"experts.*.up", config.d_ff}, {"experts.*.down", config.d_model}},
      Experts{config.d_model, config.d_ff, config.n_experts});
}

// Adds, for each expert, the sites `up` and `down` that a layer without a mixture has once.
void add_experts(std::vector<StoredSite>& sites, const ModelConfig& config, uint32_t layer) {
  for (uint32_t expert = 0; expert < config.n_experts; ++expert) {
    const std::string prefix = fmt::format("experts.{}.", expert);
    const auto add = [&](OpGroup group, const char* op, uint32_t n_in, std::vector<SitePart> parts) {
      StoredSite& site = sites.emplace_back(make_columns(group, layer, n_in, std::move(parts)));
      site.name = fmt::format("layers.{}.{}{}", layer, prefix, op);
      site.expert = expert;
    };
    std::vector<SitePart> up;
    if (config.gated) up.push_back({prefix + "gate", config.d_ff});
    up.push_back({prefix + "up", config.d_ff});
    add(OpGroup::expert_up, "up", config.d_model, std::move(up));
    add(OpGroup::expert_down, "down", config.d_ff, {{prefix + "down", config.d_model}});
  }
}

// Returns the most row groups within `target_bytes` that divide the beginning of every part.
uint32_t groups_per_mixed_neuron(const StoredSite& site, const Rows& rows, uint64_t target_bytes) {
  uint64_t largest = 0;
  for (const Encoding encoding : site.encodings)
    largest = std::max(largest, group_bytes(encoding, rows.n_in));
  const uint32_t together = most_groups_together(rows);
  auto groups = static_cast<uint32_t>(std::clamp<uint64_t>(target_bytes / largest, 1, together));
  while (together % groups != 0) --groups;
  return groups;
}

void append_extent(Manifest& plan, uint64_t bytes) {
  plan.extents.push_back({plan.data_bytes, bytes, 0});
  plan.data_bytes += bytes;
}

// Fills the last block of packed extents, because the next extents, and the end of the file, begin a block.
void end_block(Manifest& plan) {
  plan.data_bytes = align_up(plan.data_bytes, kDirectIoAlignment);
}

// Places neuron after neuron; for bundles in pieces, all pieces of one kind before the next kind.
void place_neurons(Manifest& plan, StoredSite& site) {
  site.first_extent = static_cast<uint32_t>(plan.extents.size());
  for (uint32_t piece = 0; piece < site.pieces; ++piece) {
    for (uint32_t i = 0; i < site.neurons(); ++i) append_extent(plan, site.extent_bytes(i));
    end_block(plan);
  }
}

// Places channel 0 of every layer of the group, then channel 1 of every layer (ActiveFlow, 3), so that one
// read prefetches a channel of all layers. One operator follows the other.
void place_channels(Manifest& plan, std::span<StoredSite* const> group) {
  const auto first = static_cast<uint32_t>(plan.extents.size());
  for (uint32_t i = 0; i < group.size(); ++i) group[i]->first_extent = first + i;
  for (uint32_t channel = 0; channel < group.front()->neurons(); ++channel) {
    for (const StoredSite* site : group) append_extent(plan, site->extent_bytes(channel));
  }
  end_block(plan);
}

void cut_into_runs(const StoredSite& site, Rows& rows, uint64_t target_bytes) {
  const auto groups = static_cast<uint32_t>(divide_up(rows.outputs(), kGroupRows));
  const uint32_t per_neuron =
      site.encodings.mixed()
          ? groups_per_mixed_neuron(site, rows, target_bytes)
          : groups_per_neuron(group_bytes(site.encodings.front(), rows.n_in), groups, target_bytes);
  rows.rows = per_neuron * kGroupRows;
}

void place(Manifest& plan, StoredSite& site) {
  if (!is_cut_into<Columns>(site.cut)) return place_neurons(plan, site);
  if (begins_layer_group(plan, site)) place_channels(plan, layer_group_of(plan.sites, site));
}

// Returns whether the options are in range and apply to the layout.
Status check_options(const WriteOptions& options) {
  const uint64_t neuron_bytes = options.neuron_bytes;
  if (neuron_bytes != 0 && (neuron_bytes < kDirectIoAlignment || neuron_bytes > kLargestNeuronBytes)) {
    return Error{Code::invalid_argument, "neuron bytes",
                 fmt::format("{} is out of range; a neuron has {} to {} bytes", neuron_bytes,
                             kDirectIoAlignment, kLargestNeuronBytes)};
  }
  if (options.layout != Layout::neuron && options.bundling != Bundling::row_column) {
    return Error{Code::invalid_argument, "bundling",
                 fmt::format("'{}' applies to bundles, which layout {} does not have; expected layout neuron",
                             name(options.bundling), name(options.layout))};
  }
  if (options.layer_group < 1 || options.layer_group > kMostLayersOfGroup) {
    return Error{Code::invalid_argument, "layer_group",
                 fmt::format("{} is out of range; a group has 1 to {} layers", options.layer_group,
                             kMostLayersOfGroup)};
  }
  if (options.layout != Layout::channel_group && options.layer_group != 1) {
    return Error{
        Code::invalid_argument, "layer_group",
        fmt::format("groups of {} layers are not supported in layout {}; expected layout channel-group",
                    options.layer_group, name(options.layout))};
  }
  if (options.layout != Layout::channel_group && options.experts != ExpertCut::whole) {
    return Error{Code::invalid_argument, "experts",
                 fmt::format("in channels are not supported in layout {}; expected layout channel-group",
                             name(options.layout))};
  }
  if (options.compression != Compression::none &&
      (options.layout == Layout::channel_group || options.bundling == Bundling::none)) {
    return Error{Code::invalid_argument, "compression",
                 fmt::format("'{}' requires neurons that are stored in one piece; expected layout row, or "
                             "layout neuron with bundling row-column",
                             options.codec != nullptr ? options.codec->name() : name(options.compression))};
  }
  return {};
}

// Memory that a piece of the tokenizer adds: in the manifest, and in its text while that is read or written.
constexpr uint64_t kBytesOfPiece = 384;

// Returns whether a store's files can number all extents, and this process has memory for their tables. Rows
// never reach either bound.
Status check_extent_count(const Manifest& plan) {
  uint64_t extents = 0;
  for (const StoredSite* site : std::as_const(plan).stored())
    extents += uint64_t{site->neurons()} * site->pieces;
  constexpr uint64_t kMost = kMaxChecksumBytes / sizeof(uint64_t);
  const MemoryLimit left = memory_left();
  const uint64_t bytes = extents * kBytesOfExtent;
  if (extents <= kMost && bytes > left.left_bytes) {
    return Error{Code::no_space, "layout",
                 fmt::format("'{}' needs {} extents for this model, whose tables take {}, but {} leaves {}",
                             name(plan.layout), extents, format_bytes(static_cast<double>(bytes)),
                             left.source, format_bytes(static_cast<double>(left.left_bytes)))};
  }
  if (extents <= kMost) return {};
  return Error{
      Code::unsupported, "layout",
      fmt::format("'{}' needs {} extents for this model, expected at most {}{}", name(plan.layout), extents,
                  kMost,
                  plan.experts == ExpertCut::channels
                      ? "; keep experts whole for fewer extents (--experts whole, --set model.experts=whole)"
                      : "")};
}

}  // namespace

std::string tensor_of_expert(const SitePart& part, uint32_t expert) {
  const size_t star = part.tensor.find('*');
  return part.tensor.substr(0, star) + std::to_string(expert) + part.tensor.substr(star + 1);
}

std::vector<StoredSite> site_shapes(const ModelConfig& config, Layout layout, Bundling bundling,
                                    uint32_t layer_group, ExpertCut experts) {
  const uint32_t d = config.d_model;
  std::vector<StoredSite> sites;
  const bool in_channels = layout == Layout::channel_group;
  sites.push_back(make_rows(OpGroup::embed, kNoLayer, d, {{"embed", config.vocab_size}}));
  for (uint32_t layer = 0; layer < config.n_layers; ++layer) {
    const auto add = [&](OpGroup group, uint32_t n_in, std::vector<SitePart> parts) {
      if (!in_channels) return sites.push_back(make_rows(group, layer, n_in, std::move(parts)));
      sites.push_back(make_columns(group, layer, n_in, std::move(parts)));
      sites.back().stride = layers_of_group(config.n_layers, layer_group, layer);
    };
    std::vector<SitePart> qkv = {{"q", config.q_dim()}, {"k", config.kv_dim()}, {"v", config.kv_dim()}};
    if (layout == Layout::neuron && config.qkv_relu) {
      sites.push_back(make_columns(OpGroup::qkv, layer, d, std::move(qkv)));
    } else {
      add(OpGroup::qkv, d, std::move(qkv));
    }
    add(OpGroup::o, config.q_dim(), {{"o", d}});
    if (config.has_experts(layer) && experts == ExpertCut::channels) add_experts(sites, config, layer);
    if (config.has_experts(layer) && experts == ExpertCut::whole)
      sites.push_back(make_experts(config, layer));
    // A network beside experts comes after them, because the router's norm is before them.
    const uint32_t width = config.network_width(layer);
    if (width == 0) continue;
    const std::string of = config.has_experts(layer) ? "shared." : "";
    std::vector<SitePart> up;
    if (config.gated) up.push_back({of + "gate", width});
    up.push_back({of + "up", width});
    if (layout == Layout::neuron) {
      const Bundles bundles{d, config.d_ff, config.gated};
      up.push_back({"down", config.d_ff});
      sites.push_back(make_site(OpGroup::ffn, layer, std::move(up), bundles));
      if (bundling == Bundling::none) sites.back().pieces = static_cast<uint32_t>(sites.back().parts.size());
    } else {
      add(OpGroup::up, d, std::move(up));
      add(OpGroup::down, width, {{of + "down", d}});
    }
  }
  const std::string head = config.tied_embeddings ? "embed" : "head";
  sites.push_back(make_rows(OpGroup::head, kNoLayer, d, {{head, config.vocab_size}}));
  if (config.tied_embeddings) sites.back().alias_of = 0;
  return sites;
}

uint64_t n_sites(const ModelConfig& config, Layout layout, ExpertCut experts) {
  const uint64_t of_network = layout == Layout::neuron ? 1 : 2;
  const uint64_t of_experts = experts == ExpertCut::channels ? uint64_t{2} * config.n_experts : 1;
  const uint64_t mixtures = config.is_mixture() ? config.n_layers - config.dense_layers.size() : 0;
  const uint64_t networks = config.n_layers - (config.shared_d_ff == 0 ? mixtures : 0);
  return 2 + uint64_t{2} * config.n_layers + mixtures * of_experts + networks * of_network;
}

std::vector<TensorSpec> resident_shapes(const ModelConfig& config) {
  std::unordered_set<std::string> in_sites;
  for (const StoredSite& site : site_shapes(config, Layout::row)) {
    for (const SitePart& part : site.parts) {
      const auto* experts = std::get_if<Experts>(&site.cut);
      if (experts == nullptr) in_sites.insert(part.tensor);
      for (uint32_t e = 0; experts != nullptr && e < experts->experts; ++e)
        in_sites.insert(tensor_of_expert(part, e));
    }
  }
  std::vector<TensorSpec> resident;
  for (TensorSpec& spec : required_tensors(config)) {
    if (!in_sites.contains(spec.name)) resident.push_back(std::move(spec));
  }
  return resident;
}

uint32_t groups_per_neuron(uint64_t bytes_per_group, uint32_t groups, uint64_t target_bytes) {
  TIERD_CHECK(bytes_per_group > 0 && groups > 0);
  const auto within = [&](uint64_t count) {
    return static_cast<uint32_t>(std::clamp<uint64_t>(count, 1, groups));
  };
  const uint32_t most = within(target_bytes / bytes_per_group);
  const uint32_t least = std::min(most, within(divide_up(target_bytes / 2, bytes_per_group)));
  const auto padding = [&](uint32_t count) {
    const uint64_t bytes = count * bytes_per_group;
    return align_up(bytes, kDirectIoAlignment) - bytes;
  };
  uint32_t best = most;
  for (uint32_t count = most; count >= least; --count) {
    if (within_padding(padding(count), count * bytes_per_group)) return count;
    if (padding(count) * best < padding(best) * count) best = count;  // padding relative to size
  }
  return best;
}

Result<Manifest> plan_layout(const ModelConfig& config, std::span<const TensorInfo> tensors,
                             const WriteOptions& options) {
  TIERD_CHECK((options.compression == Compression::codec) == (options.codec != nullptr));
  TIERD_TRY(check_options(options));
  if (config.channel_order && options.layout != Layout::channel_group) {
    return Error{
        Code::invalid_argument, "model.order",
        fmt::format("is an order of channels, which layout {} does not have; expected layout channel-group",
                    name(options.layout))};
  }
  if (!config.dense_layers.empty() && options.layer_group != 1) {
    return Error{Code::unsupported, "layer_group",
                 fmt::format("of {} layers is not supported for {}, whose layers have networks of different "
                             "widths; expected 1",
                             options.layer_group, config.architecture)};
  }
  if (!config.is_mixture() && options.experts != ExpertCut::whole) {
    return Error{Code::invalid_argument, "experts",
                 fmt::format("are set to '{}', but this model is not a mixture", name(options.experts))};
  }
  if (config.is_mixture() && options.layout == Layout::neuron) {
    return Error{Code::unsupported, "layout",
                 "'neuron' is not supported for a mixture, whose experts stay whole; use --layout row (--set "
                 "model.layout=row), or tierd --config configs/moe-streaming.toml"};
  }
  const TensorTable table(tensors);
  Manifest plan;
  plan.config = config;
  plan.layout = options.layout;
  plan.bundling = options.bundling;
  plan.layer_group = options.layer_group;
  plan.experts = options.experts;
  plan.compression = options.compression;
  if (options.codec != nullptr) {
    plan.codec = options.codec->name();
    plan.codec_settings = options.codec->settings();
  }
  plan.sites = site_shapes(config, plan.layout, plan.bundling, plan.layer_group, plan.experts);
  TIERD_TRY(check_extent_count(plan));
  TIERD_TRY(choose_encodings(plan, table, options));
  TIERD_TRY(check_extent_count(plan));  // with the editions
  for (const StoredSite& site : plan.sites) {
    if (!is_cut_into<Experts>(site.cut) || site.neuron_bytes(0) <= kLargestExpertBytes) continue;
    return Error{
        Code::unsupported, site.name,
        fmt::format("experts of {} bytes, expected at most {}", site.neuron_bytes(0), kLargestExpertBytes)};
  }
  for (const StoredSite* site : std::as_const(plan).stored()) plan.tensor_bytes += site->tensor_bytes();
  // Resident tensors come first: they are read at the start, and one step then reads the rest forwards.
  for (const TensorSpec& spec : resident_shapes(config)) {
    TIERD_ASSIGN([[maybe_unused]] const TensorInfo* tensor, table.get(spec.name, spec.rows, spec.cols));
    plan.resident.push_back({spec.name, spec.rows, spec.cols, static_cast<uint32_t>(plan.resident.size())});
    plan.tensor_bytes += spec.rows * encoded_bytes(Encoding::f32, spec.cols);
  }
  const uint64_t target = options.neuron_bytes != 0 ? options.neuron_bytes
                                                    : std::clamp(plan.tensor_bytes / kNeuronsPerModel,
                                                                 kMinNeuronBytes, kMaxNeuronBytes);
  for (StoredSite& site : plan.sites) {
    if (site.alias_of != kNoSite) {
      site.cut = plan.sites[site.alias_of].cut;
    } else if (auto* rows = std::get_if<Rows>(&site.cut)) {
      cut_into_runs(site, *rows, target);
    }
  }
  place_extents(plan);
  return plan;
}

void place_extents(Manifest& plan) {
  plan.extents.clear();
  plan.data_bytes = 0;
  for (const ResidentTensor& tensor : plan.resident) {
    append_extent(plan,
                  align_up(tensor.rows * encoded_bytes(Encoding::f32, tensor.cols), kDirectIoAlignment));
  }
  for (StoredSite* site : plan.stored()) place(plan, *site);
  for (StoredSite& site : plan.sites) {
    if (site.alias_of != kNoSite) site.first_extent = plan.sites[site.alias_of].first_extent;
  }
}

Result<Manifest> plan_store(const TensorSource& source, const WriteOptions& options) {
  auto planned = plan_layout(source.config(), source.tensors(), options);
  if (!planned.ok()) {
    Error error = planned.error();
    error.detail = error.line();
    error.origin = source.path();
    return error;
  }
  Manifest plan = std::move(planned).value();
  if (const Vocab* vocab = source.vocab(); vocab != nullptr) {
    const uint64_t bytes = vocab->pieces.size() * kBytesOfPiece;
    if (const MemoryLimit left = memory_left(); bytes > left.left_bytes) {
      return Error{Code::no_space, source.path(),
                   fmt::format("its tokenizer of {} pieces takes {}, but {} leaves {}", vocab->pieces.size(),
                               format_bytes(static_cast<double>(bytes)), left.source,
                               format_bytes(static_cast<double>(left.left_bytes)))};
    }
    plan.has_vocab = true;
    plan.vocab = *vocab;
  }
  plan.provenance = {source.path(), source.fingerprint(), "tierd " TIERD_VERSION};
  if (source.has_weights() || plan.compression == Compression::none) return plan;
  return assumed_plan(source, std::move(plan));
}

}  // namespace tierd
