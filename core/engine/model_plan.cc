#include "core/engine/model_plan.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>

#include "core/base/align.h"
#include "core/message/message.h"

namespace tierd {
namespace {

// The activations. What a layer needs one after the other shares a buffer.
enum Buffer : BufferId {
  kStream,  // the residual stream x
  kNormed,  // what a norm made of it
  kApart,   // what the FFN's norm made of it before attention was added, where both are parallel
  kWide,    // q, k, v side by side; gate, up side by side
  kInner,   // the heads' outputs; the activated FFN
  kBranch,  // what o and down give back to the stream
  kPicked,  // normed rows whose logits are wanted
  kLogits,
  kContribution,  // what each neuron gave
  kRouting,       // how much of each expert a row gets
  kChosen,        // inputs of experts, for each row that uses one
  kGiven,         // and what they give
};

class Planner {
 public:
  Planner(const Manifest& manifest, const ModelOptions& options)
      : manifest_(manifest),
        config_(manifest.config),
        measures_(options.measure && manifest.layout != Layout::row) {
    ComputePlan& compute = plan_.compute;
    compute.max_rows = options.max_rows;
    compute.context = options.context;
    compute.sequences = options.sequences;
    compute.kv = options.kv;
    compute.int8_activations = options.int8_activations;
    const uint32_t logit_rows = std::min(options.logit_rows, options.max_rows);
    // An expert's gate and up are computed side by side, each in whole row groups.
    const uint32_t d_ff =
        config_.is_mixture() ? static_cast<uint32_t>(align_up(config_.d_ff, kGroupRows)) : config_.d_ff;
    const uint32_t up = config_.gated ? 2 * d_ff : d_ff;
    compute.buffers = {
        {"stream", config_.d_model, 0},
        {"normed", config_.d_model, 0},
        {"apart", reads_apart() ? config_.d_model : 0, 0},
        {"wide", std::max(config_.q_dim() + 2 * config_.kv_dim(), up), 0},
        {"inner", std::max(config_.q_dim(), config_.d_ff), 0},
        {"branch", config_.d_model, 0},
        {"picked", config_.d_model, logit_rows},
        {"logits", config_.vocab_size, logit_rows},
        {"contribution", measures_ ? std::max({config_.d_ff, config_.d_model, config_.q_dim()}) : 0, 0},
        {"routing", config_.n_experts, 0},
        {"chosen", config_.is_mixture() ? config_.d_model : 0, 0},
        {"given", config_.is_mixture() ? config_.d_model : 0, 0},
    };
    plan_.logits = kLogits;
    AttentionShape& attention = compute.attention;
    attention.n_layers = config_.n_layers;
    attention.n_heads = config_.n_heads;
    attention.n_kv_heads = config_.n_kv_heads;
    attention.head_dim = config_.head_dim;
    attention.window = config_.sliding_window;
    switch (config_.position) {
      case PositionKind::rope_interleaved:
        attention.rope = RopeStyle::interleaved;
        break;
      case PositionKind::rope_half:
        attention.rope = RopeStyle::half;
        break;
      case PositionKind::learned:
        attention.rope = RopeStyle::none;
        break;
    }
    if (attention.rope != RopeStyle::none) attention.frequencies = rope_frequencies(config_);
    for (TensorId id = 0; id < manifest.resident.size(); ++id) tensors_[manifest.resident[id].name] = id;
  }

  ModelPlan make() {
    for (uint32_t s = 0; s < manifest_.sites.size(); ++s) {
      plan_.sites.all.push_back(site(manifest_.sites[s]));
      plan_.compute.sites.push_back(work(manifest_.sites[s]));
    }
    add_editions();
    const std::vector<uint64_t> offsets = buffer_offsets(plan_.compute);
    const auto place = [&](BufferId buffer) -> ActivationPlace {
      if (buffer == kNoBuffer) return {};
      return {static_cast<uint32_t>(offsets[buffer] / kPlaceUnit),
              buffer_stride(plan_.compute.buffers[buffer])};
    };
    for (uint32_t s = 0; s < plan_.sites.size(); ++s) {
      plan_.sites[s].input = place(plan_.compute.sites[s].in);
      plan_.sites[s].output = place(plan_.compute.sites[s].out);
      plan_.sites[s].contribution = place(plan_.compute.sites[s].contribution);
      plan_.sites[s].choice = place(plan_.compute.sites[s].experts.choice);
    }
    return std::move(plan_);
  }

 private:
  // One a site. A tied head is used whole in every step, the embedding a row at a time: the head owns theirs.
  void add_editions() {
    std::vector<SiteId> owner_of(manifest_.sites.size());
    std::iota(owner_of.begin(), owner_of.end(), SiteId{0});
    for (SiteId s = 0; s < manifest_.sites.size(); ++s) {
      if (const uint32_t embedding = manifest_.sites[s].alias_of; embedding != kNoSite)
        owner_of[embedding] = s;
    }
    std::vector<EditionId> edition_of(manifest_.sites.size(), kNoEdition);
    for (SiteId s = 0; s < manifest_.sites.size(); ++s) {
      if (owner_of[s] != s) continue;
      edition_of[s] = static_cast<EditionId>(plan_.sites.editions.size());
      plan_.sites.editions.push_back(edition(s));
      plan_.compute.editions.push_back(manifest_.sites[s].encodings);
    }
    for (SiteId s = 0; s < manifest_.sites.size(); ++s)
      plan_.compute.sites[s].editions = plan_.sites[s].editions = {edition_of[owner_of[s]]};
  }

  Edition edition(SiteId owner) const {
    const StoredSite& stored = manifest_.sites[owner];
    Edition edition;
    edition.owner = owner;
    edition.encoding = static_cast<uint16_t>(stored.encodings.front());
    edition.n = stored.neurons();
    edition.slot_bytes = static_cast<uint32_t>(stored.slot_bytes());
    edition.first_extent = stored.first_extent;
    edition.stride = stored.stride;
    // Only neurons cut into rows differ in size: the last may be smaller, and encodings differ by part.
    const bool alike = !is_cut_into<Rows>(stored.cut);
    edition.bytes.assign(edition.n, static_cast<uint32_t>(stored.neuron_bytes(0)));
    for (uint32_t i = 1; !alike && i < edition.n; ++i)
      edition.bytes[i] = static_cast<uint32_t>(stored.neuron_bytes(i));
    return edition;
  }

  Site site(const StoredSite& stored) const {
    Site site;
    site.name = stored.name;
    site.layer = static_cast<uint16_t>(stored.layer == kNoLayer ? UINT16_MAX : stored.layer);
    site.op_group = static_cast<uint16_t>(stored.group);
    if (stored.layer != kNoLayer)
      site.layer_group = static_cast<uint16_t>(stored.layer / manifest_.layer_group);
    cut_site(site, stored.cut);
    if (stored.group == OpGroup::embed) site.set = Site::Set::given;
    if (stored.group == OpGroup::experts) site.set = Site::Set::chosen;
    return site;
  }

  SiteWork work(const StoredSite& stored) const {
    SiteWork work;
    work.name = stored.name;
    work.cut = stored.cut;
    if (measures_ && stored.n_column_parts() != 0) work.contribution = kContribution;
    const std::string layer = "layers." + std::to_string(stored.layer) + ".";
    switch (stored.group) {
      case OpGroup::embed:
        work.gather = true;
        work.out = kStream;
        if (config_.position == PositionKind::learned) {
          work.after.push_back({.kind = StepKind::add_position,
                                .out = kStream,
                                .width = config_.d_model,
                                .weight = tensor("position"),
                                .offset = config_.position_offset});
        }
        break;
      case OpGroup::qkv:
        work.in = kNormed;
        work.out = kWide;
        work.before.push_back(norm(layer + "attn_norm", kNormed));
        if (reads_apart()) work.before.push_back(norm(layer + "ffn_norm", kApart));
        add_biases(stored, kWide, work.after);
        add_attention(stored.layer, work.after);
        break;
      case OpGroup::o:
        work.in = kInner;
        work.out = kBranch;
        add_biases(stored, kBranch, work.after);
        work.after.push_back(add_to_stream());
        break;
      case OpGroup::ffn:
        work.in = ffn_input();
        work.out = kBranch;
        work.ffn = feed_forward(layer);
        if (!config_.parallel) work.before.push_back(norm(layer + "ffn_norm", kNormed));
        if (const TensorId bias = tensor(layer + "down.bias"); bias != kNoTensor) {
          work.after.push_back(
              {.kind = StepKind::add_bias, .out = kBranch, .width = config_.d_model, .weight = bias});
        }
        work.after.push_back(add_to_stream());
        break;
      case OpGroup::up:
        work.in = ffn_input();
        work.out = kWide;
        if (!config_.parallel) work.before.push_back(norm(layer + "ffn_norm", kNormed));
        add_biases(stored, kWide, work.after);
        work.after.push_back(activation());
        break;
      case OpGroup::down:
        work.in = kInner;
        work.out = kBranch;
        add_biases(stored, kBranch, work.after);
        work.after.push_back(add_to_stream());
        break;
      case OpGroup::experts:
        work.in = kNormed;
        work.out = kBranch;
        work.ffn = feed_forward(layer);
        work.experts = {.choice = kRouting, .inputs = kChosen, .results = kGiven};
        add_router(layer, work.before);
        work.after.push_back(add_to_stream());
        break;
      case OpGroup::head:
        work.in = kPicked;
        work.out = kLogits;
        work.before.push_back(norm("out_norm", kPicked));
        add_biases(stored, kLogits, work.after);
        break;
    }
    return work;
  }

  // The two norms of a parallel layer read the same x, at once.
  bool reads_apart() const { return config_.parallel && config_.ffn_norm; }

  // In a parallel layer, what was normed before attention was added.
  BufferId ffn_input() const { return reads_apart() ? kApart : kNormed; }
  FeedForward feed_forward(const std::string& layer) const {
    return {.activation = config_.activation,
            .threshold = config_.activation_threshold,
            .gate_bias = tensor(layer + "gate.bias"),
            .up_bias = tensor(layer + "up.bias"),
            .hidden = kInner,
            .up = kWide};
  }

  Step activation() const {
    return {.kind = config_.gated ? StepKind::activate_mul : StepKind::activate,
            .in = kWide,
            .out = kInner,
            .width = config_.d_ff,
            .activation = config_.activation,
            .threshold = config_.activation_threshold};
  }

  // What experts compute from, and who of them a row uses.
  void add_router(const std::string& layer, Program& program) const {
    program.push_back(norm(layer + "ffn_norm", kNormed));
    program.push_back({.kind = StepKind::route,
                       .in = kNormed,
                       .out = kRouting,
                       .width = config_.n_experts,
                       .weight = tensor(layer + "router"),
                       .picks = config_.experts_per_token,
                       .sum_to_one = config_.expert_weights_sum_to_one});
  }

  // Position, cache and attention between q, k, v and o.
  void add_attention(uint32_t layer, Program& program) const {
    if (config_.qk_norm) {
      const std::string prefix = "layers." + std::to_string(layer) + ".";
      program.push_back(head_norm(prefix + "q_norm", 0, config_.q_dim()));
      program.push_back(head_norm(prefix + "k_norm", config_.q_dim(), config_.kv_dim()));
    }
    if (config_.qkv_clip > 0) {
      program.push_back({.kind = StepKind::clip,
                         .out = kWide,
                         .width = config_.q_dim() + 2 * config_.kv_dim(),
                         .threshold = config_.qkv_clip});
    }
    if (config_.position != PositionKind::learned) {
      // q and k lie side by side, so their heads turn in one go.
      program.push_back({.kind = StepKind::rope, .out = kWide, .width = config_.q_dim() + config_.kv_dim()});
    }
    program.push_back({.kind = StepKind::store_kv,
                       .in = kWide,
                       .column = config_.q_dim(),
                       .width = config_.kv_dim(),
                       .layer = layer});
    program.push_back(
        {.kind = StepKind::attend, .in = kWide, .out = kInner, .width = config_.q_dim(), .layer = layer});
  }

  Step norm(const std::string& name, BufferId out) const {
    const bool rms = config_.norm == Norm::rms;
    return {.kind = rms ? StepKind::rms_norm : StepKind::layer_norm,
            .in = kStream,
            .out = out,
            .width = config_.d_model,
            .weight = tensor(name),
            .bias = rms ? kNoTensor : tensor(name + ".bias"),
            .eps = config_.norm_eps};
  }

  Step head_norm(const std::string& name, uint32_t column, uint32_t width) const {
    const bool rms = config_.norm == Norm::rms;
    return {.kind = rms ? StepKind::head_rms_norm : StepKind::head_norm,
            .out = kWide,
            .column = column,
            .width = width,
            .head = config_.qk_norm_wide ? width : config_.head_dim,
            .weight = tensor(name),
            .bias = rms ? kNoTensor : tensor(name + ".bias"),
            .eps = config_.norm_eps};
  }

  Step add_to_stream() const {
    return {.kind = StepKind::add, .in = kBranch, .out = kStream, .width = config_.d_model};
  }

  void add_biases(const StoredSite& stored, BufferId out, Program& program) const {
    uint32_t column = 0;
    for (const SitePart& part : stored.parts) {
      if (const TensorId bias = tensor(part.tensor + ".bias"); bias != kNoTensor) {
        program.push_back(
            {.kind = StepKind::add_bias, .out = out, .column = column, .width = part.rows, .weight = bias});
      }
      column += part.rows;
    }
  }

  TensorId tensor(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? kNoTensor : found->second;
  }

  const Manifest& manifest_;
  const ModelConfig& config_;
  const bool measures_;
  std::unordered_map<std::string, TensorId> tensors_;
  ModelPlan plan_;
};

}  // namespace

void cut_site(Site& site, const Cut& cut) {
  site.slicing = static_cast<uint8_t>(cut.index());
  site.added = is_added(cut);
  site.run = run_of(cut);
  site.n = neurons(cut);
  site.n_in = inputs(cut);
  site.n_out = outputs(cut);
}

ModelPlan plan_model(const Manifest& manifest, const ModelOptions& options) {
  return Planner(manifest, options).make();
}

}  // namespace tierd
