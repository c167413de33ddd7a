#include "core/engine/unit_plan.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <unordered_map>

#include "core/base/align.h"
#include "core/model/config.h"
#include "core/model/layout/row_group.h"

namespace tierd {
namespace {

// The buffers of activations. Values that a layer needs one after the other share a buffer.
enum Buffer : BufferId {
  kStream,  // the residual stream x
  kNormed,  // output of a norm
  kApart,   // output of the FFN's norm in a parallel layer, before attention is added
  kWide,    // q, k, v side by side; gate, up side by side
  kInner,   // the heads' outputs; the activated FFN
  kBranch,  // output of o and down
  kPicked,  // normed rows whose logits are wanted
  kLogits,
  kContribution,  // contribution of each neuron
  kRouting,       // the router's weight of each expert, for each row
  kChosen,        // inputs of experts, for each row that uses one
  kGiven,         // the results of experts for these rows
  kOrdered,       // a site's input in the order of its channels
};

class UnitPlanner {
 public:
  UnitPlanner(const Manifest& manifest, const ModelOptions& options, const UnitRole& role)
      : manifest_(manifest),
        config_(manifest.config),
        role_(role),
        measures_(options.measure && manifest.layout != Layout::row) {
    ComputePlan& compute = plan_.compute;
    compute.max_rows = options.max_rows;
    compute.context = options.context;
    compute.sequences = options.sequences;
    compute.kv = options.kv;
    compute.int8_activations = options.int8_activations;
    const uint32_t logit_rows = std::min(options.logit_rows, options.max_rows);
    // Gate and up of an expert are adjacent in the buffer, each in whole row groups.
    const uint32_t of_expert =
        config_.is_mixture() ? static_cast<uint32_t>(align_up(config_.d_ff, kGroupRows)) : 0;
    const uint32_t d_ff = std::max(of_expert, config_.widest_network());
    const uint32_t up = config_.gated ? 2 * d_ff : d_ff;
    compute.buffers = {
        {"stream", config_.d_model, 0},
        {"normed", config_.d_model, 0},
        {"apart", reads_apart() ? config_.d_model : 0, 0},
        {"wide", std::max(config_.q_dim() + 2 * config_.kv_dim(), up), 0},
        {"inner", std::max({config_.q_dim(), config_.d_ff, config_.widest_network()}), 0},
        {"branch", config_.d_model, 0},
        {"picked", config_.d_model, logit_rows},
        {"logits", config_.vocab_size, logit_rows},
        {"contribution", measures_ ? std::max(widest_input(), config_.d_ff) : 0, 0},
        {"routing", config_.n_experts, 0},
        {"chosen", config_.is_mixture() ? config_.d_model : 0, 0},
        {"given", config_.is_mixture() ? config_.d_model : 0, 0},
        {"ordered", config_.channel_order ? std::max(widest_input(), config_.d_ff) : 0, 0},
    };
    for (uint32_t i = 0; i < manifest.resident.size(); ++i) resident_[manifest.resident[i].name] = i;
  }

  UnitPlan make() {
    shape_attention(plan_.compute.attention);
    for (const StoredSite& stored : manifest_.sites) plan_.compute.sites.push_back(work(stored));
    return std::move(plan_);
  }

 private:
  // Columns of a buffer.
  struct Range {
    uint32_t first;
    uint32_t count;
  };

  // The widest input of a site but experts.
  uint32_t widest_input() const {
    return std::max({config_.d_model, config_.q_dim(), config_.widest_network()});
  }

  void shape_attention(AttentionShape& attention) const {
    if (role_.heads == 0) return;
    attention.n_layers = config_.n_layers;
    attention.n_heads = role_.heads * queries();
    attention.n_kv_heads = role_.heads;
    attention.head_dim = config_.head_dim;
    attention.scale = config_.attention_scale != 0 ? config_.attention_scale
                                                   : 1.0F / std::sqrt(static_cast<float>(config_.head_dim));
    attention.cap = config_.attention_cap;
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
    if (attention.rope == RopeStyle::none) return;
    attention.magnitude = config_.rope.magnitude;
    const auto frequencies = [&](const Rope& rope) {
      return rope_frequencies(rope, config_.rotary_dim(), plan_.compute.context);
    };
    attention.frequencies = {frequencies(config_.rope)};
    if (config_.local_theta != 0) attention.frequencies.push_back(frequencies(local_rope(config_)));
  }

  SiteWork work(const StoredSite& stored) {
    const std::string layer = "layers." + std::to_string(stored.layer) + ".";
    SiteWork work;
    work.name = stored.name;
    work.cut = stored.cut;
    if (measures_ && stored.n_column_parts() != 0) work.contribution = kContribution;
    place(stored, work);
    if (stored.group == OpGroup::ffn) work.ffn = feed_forward(layer);
    if (stored.group == OpGroup::experts) {
      work.ffn = feed_forward(layer + "experts.");
      work.ffn.down_bias = tensor(layer + "experts.down.bias");
    }
    if (role_.dense) add_segments(stored, layer, work);
    if (role_.heads != 0 && stored.group == OpGroup::qkv) {
      add_biases(stored, kWide, columns_of_heads(), work.after);
      add_attention(stored.layer, work.after);
      add_order(layer + "o", kInner, config_.q_dim(), work.after);
    }
    return work;
  }

  void place(const StoredSite& stored, SiteWork& work) const {
    switch (stored.group) {
      case OpGroup::embed:
        work.gather = true;
        work.out = kStream;
        break;
      case OpGroup::qkv:
        work.in = channels_of(kNormed);
        work.out = kWide;
        break;
      case OpGroup::ffn:
        work.in = ffn_input();
        work.out = kBranch;
        break;
      case OpGroup::up:
        work.in = channels_of(ffn_input());
        work.out = kWide;
        break;
      case OpGroup::o:
      case OpGroup::down:
        work.in = channels_of(kInner);
        work.out = kBranch;
        break;
      case OpGroup::expert_up:
        work.in = kChosen;
        work.out = kWide;
        break;
      case OpGroup::expert_down:
        work.in = expert_channels_of(kInner);
        work.out = kGiven;
        break;
      case OpGroup::experts:
        work.in = kNormed;
        work.out = kBranch;
        work.experts = {.choice = kRouting, .inputs = kChosen, .results = kGiven};
        break;
      case OpGroup::head:
        work.in = kPicked;
        work.out = kLogits;
        break;
    }
  }

  // Adds all segments except attention.
  void add_segments(const StoredSite& stored, const std::string& layer, SiteWork& work) {
    const std::vector<Range> all = {{0, outputs(stored.cut)}};
    switch (stored.group) {
      case OpGroup::embed:
        if (config_.embed_scale != 1)
          work.after.push_back(scale(kStream, config_.d_model, config_.embed_scale));
        if (config_.position != PositionKind::learned) break;
        work.after.push_back({.kind = StepKind::add_position,
                              .out = kStream,
                              .width = config_.d_model,
                              .weight = tensor("position"),
                              .offset = config_.position_offset});
        break;
      case OpGroup::qkv:
        work.before.push_back(input(layer + "attn_norm", kNormed));
        if (config_.qkv_relu) {
          work.before.push_back({.kind = StepKind::activate,
                                 .in = kNormed,
                                 .out = kNormed,
                                 .width = config_.d_model,
                                 .activation = Activation::relu});
        }
        if (reads_apart()) work.before.push_back(norm(layer + "ffn_norm", kApart));
        add_order(layer + "qkv", kNormed, config_.d_model, work.before);
        break;
      case OpGroup::o:
        add_biases(stored, kBranch, all, work.after);
        add_to_stream(layer + "attn_post_norm", work.after);
        // The engine reads the router's output before it passes the first expert.
        if (manifest_.experts == ExpertCut::channels && config_.has_experts(stored.layer))
          add_router(layer, work.after);
        break;
      case OpGroup::down:
        add_biases(stored, kBranch, all, work.after);
        if (config_.shared_gate && config_.has_experts(stored.layer)) {
          work.after.push_back({.kind = StepKind::gate,
                                .in = kNormed,
                                .out = kBranch,
                                .width = config_.d_model,
                                .weight = tensor(layer + "shared_gate")});
        }
        add_to_stream(layer + "ffn_post_norm", work.after);
        break;
      case OpGroup::ffn:
        if (!config_.parallel) work.before.push_back(input(layer + "ffn_norm", kNormed));
        if (const TensorId bias = tensor(layer + "down.bias"); bias != kNoTensor) {
          work.after.push_back(
              {.kind = StepKind::add_bias, .out = kBranch, .width = config_.d_model, .weight = bias});
        }
        add_to_stream(layer + "ffn_post_norm", work.after);
        break;
      case OpGroup::up:
        // A network beside experts reads what the router has read.
        if (!config_.parallel && !config_.has_experts(stored.layer))
          work.before.push_back(input(layer + "ffn_norm", kNormed));
        add_order(layer + "up", ffn_input(), config_.d_model, work.before);
        add_biases(stored, kWide, all, work.after);
        work.after.push_back(activation(config_.network_width(stored.layer)));
        add_order(layer + "down", kInner, config_.network_width(stored.layer), work.after);
        break;
      case OpGroup::expert_up:
        work.before.push_back({.kind = StepKind::pick,
                               .in = kNormed,
                               .out = kChosen,
                               .width = config_.d_model,
                               .weight = tensor(stored.name + ".order")});
        add_expert_biases(stored, kWide, work.after);
        work.after.push_back(activation(config_.d_ff));
        if (config_.expert_order) add_order(down_of(stored), kInner, config_.d_ff, work.after);
        break;
      case OpGroup::expert_down:
        add_expert_biases(stored, kGiven, work.after);
        // The results are added to the residual stream, in the order of the experts.
        work.after.push_back({.kind = StepKind::add_chosen,
                              .in = kGiven,
                              .out = kStream,
                              .column = stored.expert,
                              .width = config_.d_model,
                              .choice = kRouting});
        break;
      case OpGroup::experts:
        add_router(layer, work.before);
        add_to_stream(layer + "ffn_post_norm", work.after);
        break;
      case OpGroup::head:
        work.before.push_back(norm("out_norm", kPicked));
        add_biases(stored, kLogits, all, work.after);
        if (config_.logit_scale != 1)
          work.after.push_back(scale(kLogits, config_.vocab_size, config_.logit_scale));
        if (config_.logit_cap != 0) {
          work.after.push_back({.kind = StepKind::cap,
                                .out = kLogits,
                                .width = config_.vocab_size,
                                .threshold = config_.logit_cap});
        }
        break;
    }
  }

  // Return the buffer of a site's input: `buffer`, or kOrdered if channels have an order.
  BufferId channels_of(BufferId buffer) const { return config_.channel_order ? BufferId{kOrdered} : buffer; }
  BufferId expert_channels_of(BufferId buffer) const {
    return config_.expert_order ? BufferId{kOrdered} : buffer;
  }
  // Returns the name of the `down` operator of the same expert.
  static std::string down_of(const StoredSite& up) {
    return up.name.substr(0, up.name.rfind('.') + 1) + "down";
  }
  void add_order(const std::string& site, BufferId from, uint32_t width, Program& program) {
    if (!config_.channel_order) return;
    program.push_back({.kind = StepKind::reorder,
                       .in = from,
                       .out = kOrdered,
                       .width = width,
                       .weight = tensor(site + ".order")});
  }

  // In a parallel layer with an FFN norm, both norms read the same x.
  bool reads_apart() const { return config_.parallel && config_.ffn_norm; }

  // Returns the buffer of the FFN's input; in a parallel layer it was normed before attention is added.
  BufferId ffn_input() const { return reads_apart() ? kApart : kNormed; }
  FeedForward feed_forward(const std::string& layer) {
    return {.activation = config_.activation,
            .threshold = config_.activation_threshold,
            .gate_bias = tensor(layer + "gate.bias"),
            .up_bias = tensor(layer + "up.bias"),
            .hidden = kInner,
            .up = kWide};
  }

  Step activation(uint32_t width) const {
    return {.kind = config_.gated ? StepKind::activate_mul : StepKind::activate,
            .in = kWide,
            .out = kInner,
            .width = width,
            .activation = config_.activation,
            .threshold = config_.activation_threshold};
  }

  // Adds the norm of the experts' input, and the router.
  void add_router(const std::string& layer, Program& program) {
    program.push_back(norm(layer + "ffn_norm", kNormed));
    program.push_back({.kind = StepKind::route,
                       .in = kNormed,
                       .out = kRouting,
                       .width = config_.n_experts,
                       .weight = tensor(layer + "router"),
                       .bias = tensor(layer + "router.bias"),
                       .routing = {.score = config_.router_score,
                                   .picks = config_.experts_per_token,
                                   .sum_to_one = config_.expert_weights_sum_to_one,
                                   .scale = config_.expert_scale,
                                   .correction = tensor(layer + "router.correction"),
                                   .groups = config_.expert_groups,
                                   .groups_used = config_.expert_groups_used,
                                   .group_best = config_.group_best}});
  }

  uint32_t queries() const { return config_.n_heads / config_.n_kv_heads; }  // heads of a KV head
  Range q_columns() const {
    const uint32_t of_head = queries() * config_.head_dim;
    return {role_.first_head * of_head, role_.heads * of_head};
  }
  Range k_columns() const {
    return {config_.q_dim() + role_.first_head * config_.head_dim, role_.heads * config_.head_dim};
  }
  Range v_columns() const {
    const Range keys = k_columns();
    return {keys.first + config_.kv_dim(), keys.count};
  }
  // Merges adjacent ranges of columns.
  std::vector<Range> join(std::initializer_list<Range> ranges) const {
    std::vector<Range> joined;
    for (const Range& range : ranges) {
      if (!joined.empty() && joined.back().first + joined.back().count == range.first) {
        joined.back().count += range.count;
      } else {
        joined.push_back(range);
      }
    }
    return joined;
  }
  std::vector<Range> columns_of_heads() const { return join({q_columns(), k_columns(), v_columns()}); }

  // Adds position encoding, KV cache and attention, between q, k, v and o.
  void add_attention(uint32_t layer, Program& program) {
    const Range q = q_columns(), k = k_columns(), v = v_columns();
    if (config_.qk_norm) {
      const std::string prefix = "layers." + std::to_string(layer) + ".";
      program.push_back(head_norm(prefix + "q_norm", q));
      program.push_back(head_norm(prefix + "k_norm", k));
    }
    if (config_.qkv_clip > 0) {
      for (const Range& range : columns_of_heads()) {
        program.push_back({.kind = StepKind::clip,
                           .out = kWide,
                           .column = range.first,
                           .width = range.count,
                           .threshold = config_.qkv_clip});
      }
    }
    if (config_.turns(layer)) {
      for (const Range& range : join({q, k}))
        program.push_back({.kind = StepKind::rope,
                           .out = kWide,
                           .column = range.first,
                           .width = range.count,
                           .turn = config_.turns_locally(layer) ? 1u : 0u});
    }
    if (config_.query_growth != 0) {
      program.push_back({.kind = StepKind::temper,
                         .out = kWide,
                         .column = q.first,
                         .width = q.count,
                         .factor = config_.query_growth,
                         .span = config_.growth_span});
    }
    program.push_back({.kind = StepKind::store_kv,
                       .in = kWide,
                       .column = k.first,
                       .width = k.count,
                       .layer = layer,
                       .offset = v.first});
    program.push_back({.kind = StepKind::attend,
                       .in = kWide,
                       .out = kInner,
                       .column = q.first,
                       .width = q.count,
                       .weight = tensor("layers." + std::to_string(layer) + ".sinks"),
                       .layer = layer,
                       .window = config_.window_of(layer),
                       .offset = role_.first_head * queries()});
  }

  Step norm(const std::string& name, BufferId out) {
    const bool rms = config_.norm == Norm::rms;
    return {.kind = rms ? StepKind::rms_norm : StepKind::layer_norm,
            .in = kStream,
            .out = out,
            .width = config_.d_model,
            .weight = tensor(name),
            .bias = rms ? kNoTensor : tensor(name + ".bias"),
            .eps = config_.norm_eps};
  }

  // Returns the norm of x, or a copy of it for a model without norms of inputs.
  Step input(const std::string& name, BufferId out) {
    if (config_.attn_norm) return norm(name, out);
    return {.kind = StepKind::pick, .in = kStream, .out = out, .width = config_.d_model};
  }

  Step head_norm(const std::string& name, const Range& columns) {
    const bool rms = config_.norm == Norm::rms;
    return {.kind = rms ? StepKind::head_rms_norm : StepKind::head_norm,
            .out = kWide,
            .column = columns.first,
            .width = columns.count,
            .head = config_.qk_norm_wide ? columns.count : config_.head_dim,
            .weight = tensor(name),
            .bias = rms ? kNoTensor : tensor(name + ".bias"),
            .eps = config_.norm_eps};
  }

  static Step scale(BufferId buffer, uint32_t width, float factor) {
    return {.kind = StepKind::scale, .out = buffer, .width = width, .factor = factor};
  }

  // Adds the result of attention or FFN to x; `name`: of its norm, if the model has norms of results.
  void add_to_stream(const std::string& name, Program& program) {
    if (config_.post_norms) {
      program.push_back({.kind = StepKind::head_rms_norm,
                         .out = kBranch,
                         .width = config_.d_model,
                         .head = config_.d_model,
                         .weight = tensor(name),
                         .eps = config_.norm_eps});
    }
    if (config_.residual_scale != 1)
      program.push_back(scale(kBranch, config_.d_model, config_.residual_scale));
    program.push_back({.kind = StepKind::add, .in = kBranch, .out = kStream, .width = config_.d_model});
  }

  // Adds the biases of the site's output in these columns.
  void add_biases(const StoredSite& stored, BufferId out, std::span<const Range> ranges, Program& program) {
    for (const Range& range : ranges) {
      uint32_t column = 0;
      for (const SitePart& part : stored.parts) {
        const uint32_t begin = std::max(column, range.first);
        const uint32_t end = std::min(column + part.rows, range.first + range.count);
        if (const TensorId bias = begin < end ? tensor(part.tensor + ".bias") : kNoTensor;
            bias != kNoTensor) {
          program.push_back({.kind = StepKind::add_bias,
                             .out = out,
                             .column = begin,
                             .width = end - begin,
                             .weight = bias,
                             .offset = begin - column});
        }
        column += part.rows;
      }
    }
  }

  // Adds the biases of one expert's operators, which are lines of tensors of all experts.
  void add_expert_biases(const StoredSite& stored, BufferId out, Program& program) {
    uint32_t column = 0;
    for (const SitePart& part : stored.parts) {
      const std::string op = part.tensor.substr(part.tensor.rfind('.') + 1);
      const std::string name = "layers." + std::to_string(stored.layer) + ".experts." + op + ".bias";
      if (const TensorId bias = tensor(name); bias != kNoTensor) {
        program.push_back({.kind = StepKind::add_bias,
                           .out = out,
                           .column = column,
                           .width = part.rows,
                           .weight = bias,
                           .offset = stored.expert * part.rows});
      }
      column += part.rows;
    }
  }

  TensorId tensor(const std::string& name) {
    const auto found = resident_.find(name);
    if (found == resident_.end()) return kNoTensor;
    const auto [number, is_new] =
        numbers_.try_emplace(found->second, static_cast<TensorId>(plan_.tensors.size()));
    if (is_new) plan_.tensors.push_back(found->second);
    return number->second;
  }

  const Manifest& manifest_;
  const ModelConfig& config_;
  const UnitRole role_;
  const bool measures_;
  std::unordered_map<std::string, uint32_t> resident_;
  std::unordered_map<uint32_t, TensorId> numbers_;  // of those in the plan
  UnitPlan plan_;
};

}  // namespace

UnitPlan plan_unit(const Manifest& manifest, const ModelOptions& options, const UnitRole& role) {
  return UnitPlanner(manifest, options, role).make();
}

}  // namespace tierd
