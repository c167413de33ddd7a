// Dense work as data: the computations of an agent around the neurons of a site. The engine writes programs
// from a model's configuration, agents run them; the kernel passes their numbers without interpreting them.
//
// Activations are in numbered buffers of the agent: [rows of the batch x width] floats. A row of a batch is
// a token of a sequence at a position (RowInfo).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/activation.h"
#include "core/model/layout/bitmap.h"
#include "core/model/layout/cut.h"

namespace tierd {

using BufferId = uint16_t;
using TensorId = uint32_t;
inline constexpr TensorId kNoTensor = UINT32_MAX;
inline constexpr BufferId kNoBuffer = UINT16_MAX;

struct BufferSpec {
  std::string name;
  uint32_t width = 0;
  uint32_t rows = 0;  // 0: as many as a batch may have; else the most rows ever written
};

enum class StepKind : uint8_t {
  rms_norm,       // out[i] = norm(in[row of i]) * weight
  layer_norm,     // out[i] = norm(in[row of i]) * weight + bias
  pick,           // out[i, c] = in[row of i, weight[c]], column numbers; without a weight, of c
  add_chosen,     // out[row of i] += in[i] * choice[row of i, column]
  add_bias,       // out[i, column … column + width) += weight[offset …], a vector
  add_position,   // out[i] += weight[position + offset]
  add,            // out[i] += in[i]
  scale,          // out[i, column … column + width) *= factor
  cap,            // out[i, column … column + width) = threshold * tanh(it / threshold)
  head_norm,      // every `head` values of out[i, column … column + width) = norm(them) * weight + bias
  head_rms_norm,  // the same with RMS, without bias
  clip,           // out[i, column … column + width) cut off at `threshold` to either side
  route,     // out[i] = weights of the experts by in[i] times weight [width x in's width], plus bias, see
             // ExpertChoice
  gate,      // out[i] *= sigmoid(in[i] . weight)
  temper,    // out[i, column … column + width) *= 1 + factor * ln(1 + floor(position / span))
  rope,      // rotates the heads of out[i, column … column + width) by frequencies number `turn`
  store_kv,  // KV cache of the layer at the position := `width` keys in[i, column …] and values in[i, offset
             // …]
  attend,  // out[i, column …] = attention of the queries in[i, column … column + width) over the KV cache,
           // over the last `window` positions; 0: all; with a weight, value offset + h of it is head h's sink
  reorder,       // out[i, c] = in[i, weight[c]], a vector of column numbers below in's width
  activate,      // out[i] = f(in[i, 0 … width))
  activate_mul,  // out[i] = f(in[i, 0 … width)) * in[i, width … 2 width)
};

// How a router's products become the weights of experts: all but the `picks` chosen ones are 0. With groups,
// experts of the `groups_used` best groups alone are chosen; a group's score is the sum of its `group_best`
// best experts' scores.
struct ExpertChoice {
  RouterScore score = RouterScore::softmax;
  uint32_t picks = 0;
  bool sum_to_one = false;          // the picked weights
  float scale = 1;                  // of the picked weights
  TensorId correction = kNoTensor;  // is added to the scores for the choice alone
  uint32_t groups = 0;
  uint32_t groups_used = 0;
  uint32_t group_best = 1;
};

struct Step {
  StepKind kind = StepKind::add;
  BufferId in = kNoBuffer;
  BufferId out = kNoBuffer;
  uint32_t column = 0;
  uint32_t width = 0;
  uint32_t head = 0;  // values that are normed together
  TensorId weight = kNoTensor;
  TensorId bias = kNoTensor;
  BufferId choice = kNoBuffer;  // the weight of each expert's result, for each row
  uint32_t layer = 0;
  uint32_t window = 0;
  uint32_t turn = 0;
  uint32_t offset = 0;
  float eps = 0;
  Activation activation = Activation::silu;
  float threshold = 0;  // of the activation, of `clip` or of `cap`
  float factor = 1;
  uint32_t span = 0;
  ExpertChoice routing = {};
};
using Program = std::vector<Step>;

// The activation between the two halves of a feed-forward network that is cut into neurons. The sums of
// neuron n, up_n = up[n] . in[i] + up_bias[n] and gate_n likewise, give hidden_n = f(gate_n) * up_n, or
// f(up_n) without a gate.
struct FeedForward {
  Activation activation = Activation::relu;
  float threshold = 0;
  // Vectors; of whole experts, matrices [experts x width].
  TensorId gate_bias = kNoTensor;
  TensorId up_bias = kNoTensor;
  TensorId down_bias = kNoTensor;  // of whole experts
  BufferId hidden = kNoBuffer;     // scratch of the site's width, by place in the message
  BufferId up = kNoBuffer;         // another one, if there is a gate
};

// Buffers for whole experts, besides those of FeedForward. Each has a line for each pair of an expert and a
// row that uses it, at most as many at a time as a batch may have rows.
struct ExpertBuffers {
  BufferId choice = kNoBuffer;   // [rows x experts] weight of each expert's result, for each row; 0: not used
  BufferId inputs = kNoBuffer;   // scratch as wide as the site's input
  BufferId results = kNoBuffer;  // scratch as wide as its output
};

// The work of a site, by its cut.
//   Rows     out[i, r] = sum over c of W[r, c] * in[i, c], or, for a gather, out[i] = row `token of i` of W
//   Bundles  out[i] = sum over n of hidden_n[i] * down[n]
//   Columns  out[i] = sum over c of in[i, c] * column c of W
//   Experts  out[i] = sum over the experts e that row i uses of choice[i, e] * down_e f(gate_e in[i]) * (up_e
//   in[i])
struct SiteWork {
  std::string name;
  Cut cut;
  std::vector<uint32_t> editions;  // numbers, into ComputePlan::editions
  bool gather = false;
  FeedForward ffn;        // of Bundles and Experts
  ExpertBuffers experts;  // of Experts
  // Contribution of each neuron, on request, for sites whose results are added: the length of the neuron's
  // addend, |hidden_n| * ||down[n]|| or |in_n| * ||column n||, for every row. 0: the neuron is not active.
  BufferId contribution = kNoBuffer;
  BufferId in = kNoBuffer;
  BufferId out = kNoBuffer;
  Program before;
  Program after;
};

enum class RopeStyle : uint8_t { none, interleaved, half };
enum class KvEncoding : uint8_t { f16, f32 };

// The heads of the agent; without heads there are no layers.
struct AttentionShape {
  uint32_t n_layers = 0;
  uint32_t n_heads = 0;
  uint32_t n_kv_heads = 0;
  uint32_t head_dim = 0;
  float scale = 0;  // of the products of queries and keys
  float cap = 0;    // a score is cap * tanh(score / cap); 0: as it is
  RopeStyle rope = RopeStyle::none;
  float magnitude = 1;  // rotated values are multiplied by it
  // Radians per position, one for each rotated pair: the first 2 * size() values of a head. Layers may
  // differ, by Step::turn; all have as many.
  std::vector<std::vector<float>> frequencies;

  uint32_t pairs() const {
    return frequencies.empty() ? 0 : static_cast<uint32_t>(frequencies.front().size());
  }

  uint32_t kv_dim() const { return n_kv_heads * head_dim; }
};

// The compressed neurons of an edition: each is a bitmap of its dense bytes.
struct CompressedNeurons {
  Bitmap bitmap;
  std::vector<uint32_t> bytes;  // [neurons] of each
};

// The neurons of an edition that are made of another one's as they are moved: expanded if the source is
// compressed, else encoded anew.
struct MadeNeurons {
  uint32_t of = 0;    // the source edition
  uint32_t site = 0;  // the site of the neurons
};

// Everything that an agent needs to compute its part of a model, except the weights.
struct ComputePlan {
  std::vector<BufferSpec> buffers;
  std::vector<SiteWork> sites;      // by site number
  std::vector<Encodings> editions;  // by edition number: the encoding of each part of a neuron
  std::vector<std::optional<CompressedNeurons>> compressed;  // by edition number; empty: none is compressed
  std::vector<std::optional<MadeNeurons>> made;              // likewise
  AttentionShape attention;
  uint32_t max_rows = 1;   // of a batch
  uint32_t context = 0;    // positions of the KV cache
  uint32_t sequences = 1;  // slots of the KV cache
  KvEncoding kv = KvEncoding::f16;
  bool int8_activations = false;  // lossy: for block-encoded weights; the error is measured

  // Returns NULL if the edition's neurons are dense.
  const CompressedNeurons* compressed_of(uint32_t edition) const {
    return edition < compressed.size() && compressed[edition] ? &*compressed[edition] : nullptr;
  }
  // Returns NULL if the edition's neurons are not converted.
  const MadeNeurons* made_of(uint32_t edition) const {
    return edition < made.size() && made[edition] ? &*made[edition] : nullptr;
  }
  // Return NULL if they are not expanded, or not encoded anew.
  const MadeNeurons* expanded_of(uint32_t edition) const {
    const MadeNeurons* const how = made_of(edition);
    return how != nullptr && compressed_of(how->of) != nullptr ? how : nullptr;
  }
  const MadeNeurons* recoded_of(uint32_t edition) const {
    const MadeNeurons* const how = made_of(edition);
    return how != nullptr && compressed_of(how->of) == nullptr ? how : nullptr;
  }
};

// Returns where each buffer begins in the memory of all buffers, in bytes, 64 B aligned, and the end as one
// more entry. Row i of buffer b starts at buffer_offsets[b] plus i * buffer_stride(b) floats.
std::vector<uint64_t> buffer_offsets(const ComputePlan& plan);
// Returns the floats from one row to the next: the width, rounded up to whole row groups, as kernels write.
uint32_t buffer_stride(const BufferSpec& buffer);

// Return the bytes of the plan's buffers and quantized activations, and of its KV cache.
uint64_t activation_bytes(const ComputePlan& plan);
uint64_t kv_bytes(const ComputePlan& plan);

}  // namespace tierd
