// A store is a directory: `manifest.json`, one data file and the checksums of what lies in it. The manifest
// says what the model is, which sites it has and where each neuron's bytes lie.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/align.h"
#include "core/base/result.h"
#include "core/layout/bundle.h"
#include "core/layout/column.h"
#include "core/layout/encoding.h"
#include "core/layout/expert.h"
#include "core/layout/neuron.h"
#include "core/layout/row_group.h"
#include "core/message/extent_table.h"
#include "core/model/config.h"
#include "core/text/vocab.h"

namespace tierd {

inline constexpr uint32_t kStoreFormat = 7;
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kDataFile = "weights.bin";
inline constexpr std::string_view kChecksumFile = "checksums.bin";
inline constexpr uint32_t kNoLayer = UINT32_MAX;
inline constexpr uint32_t kNoSite = UINT32_MAX;
inline constexpr uint32_t kNoExpert = UINT32_MAX;

enum class Layout : uint8_t {
  row,     // every dense operator is cut into runs of output rows
  neuron,  // the same, but feed-forward networks are cut into bundles of a row of gate and up and a column of
           // down
  channel_group,  // the layers' operators are cut into input channels; those of one number lie side by side,
                  // layer after layer of a group
};
std::string_view name(Layout layout);
std::optional<Layout> layout_by_name(std::string_view name);

// How the bundles of layout neuron lie in the file.
enum class Bundling : uint8_t {
  row_column,  // what belongs to a neuron side by side: one read
  none,        // all rows of gate, all rows of up, all columns of down: two or three reads, to compare with
};
std::string_view name(Bundling bundling);
std::optional<Bundling> bundling_by_name(std::string_view name);

// How the experts of a mixture are cut where the layout is channel_group; in others they are whole.
enum class ExpertCut : uint8_t {
  whole,     // all experts of a layer are the neurons of one site
  channels,  // each has sites of its own, cut into input channels as the other operators are
};
std::string_view name(ExpertCut cut);
std::optional<ExpertCut> expert_cut_by_name(std::string_view name);

// Which operators of a layer share an input and are stacked into one matrix.
enum class OpGroup : uint8_t {
  embed,  // rows picked by token id
  qkv,    // q, then k, then v
  o,
  up,  // gate, then up, where the model is gated; otherwise up
  down,
  head,
  ffn,        // gate, up and down, cut into neurons
  experts,    // gate, up and down of each expert of a mixture
  expert_up,  // as up, of one expert
  expert_down,
};
std::string_view name(OpGroup group);

// Padding that is worth the alignment: at most 3 %.
inline constexpr uint64_t kPaddingPercent = 3;
constexpr bool within_padding(uint64_t padding, uint64_t bytes) {
  return padding * 100 <= kPaddingPercent * bytes;
}

// Of one expert: what a slot may hold, and a read bring.
inline constexpr uint64_t kLargestExpertBytes = 1u << 30;

// Layers whose channels of one number lie side by side: at most, of any store.
inline constexpr uint32_t kMostLayersOfGroup = 1024;
// Of the group that this layer belongs to, the last of which may have fewer.
constexpr uint32_t layers_of_group(uint32_t n_layers, uint32_t layer_group, uint32_t layer) {
  return std::clamp(n_layers - (layer - layer % layer_group), 1u, layer_group);
}

// One stacked tensor of a site.
struct SitePart {
  std::string tensor;                 // our name, e.g. "layers.3.q"; of experts, "layers.3.experts.*.up"
  uint32_t rows = 0;                  // of experts, of each
  Encoding encoding = Encoding::f32;  // as the store keeps it
};
// The name of the part's tensor in one expert.
std::string tensor_of_expert(const SitePart& part, uint32_t expert);

// Axis row: a dense operator, its parts stacked along the output rows, cut into neurons of `rows_per_neuron`
// rows (a multiple of 16; the last neuron may have fewer). Where its parts differ in encoding, each begins
// with a neuron, so that a neuron has one. Axis neuron: gate, up and down, neuron i a bundle. Axis channel:
// the parts stacked likewise, neuron i their column i. Axis expert: neuron i is gate, up and down of expert
// i, each of which may have an encoding of its own. Neuron i is extent first_extent + stride * i. Of pieces,
// p of neuron i is extent first_extent + p * neurons + i. The stride of channels is the layers of the group,
// whose sites begin one extent after the other; of an expert's channels it is 1, for the next layers' routers
// choose others; of all others 1.
struct StoredSite {
  std::string name;  // "embed", "layers.3.qkv", "head"
  OpGroup group = OpGroup::qkv;
  Axis axis = Axis::row;
  uint32_t layer = kNoLayer;
  uint32_t expert_number = kNoExpert;  // whose operator it is, of one expert alone
  Encoding encoding = Encoding::f32;   // of the first part; on axes neuron and channel, of all
  uint32_t n_in = 0;
  uint32_t n_out = 0;  // axes row and channel: the sum of the parts' rows
  // Axis neuron: 1, of each part; axis channel: 0; axis expert: of gate and up, and columns of down.
  uint32_t rows_per_neuron = 0;
  uint32_t neurons = 0;
  uint32_t first_extent = 0;
  uint32_t stride = 1;
  uint32_t pieces = 1;          // extents of a neuron: more than one only where bundles are not bundled
  uint32_t alias_of = kNoSite;  // tied head: index of the embedding; shares its extents, has none of its own
  std::vector<SitePart> parts;
  // What encoding parts anew has lost: sqrt(sum (stored - source)^2 / sum source^2) over them; where the
  // store keeps the source's values, nothing.
  std::optional<float> encoding_error;

  uint32_t rows_of(uint32_t neuron) const {
    return neuron + 1 < neurons ? rows_per_neuron : n_out - neuron * rows_per_neuron;
  }
  uint32_t groups_of(uint32_t neuron) const {
    return static_cast<uint32_t>(divide_up(rows_of(neuron), kGroupRows));
  }
  // Axis row: of the part that the neuron is of.
  Encoding encoding_of(uint32_t neuron) const {
    uint64_t row = uint64_t{neuron} * rows_per_neuron;
    for (const SitePart& part : parts) {
      if (row < part.rows) return part.encoding;
      row -= part.rows;
    }
    return encoding;
  }
  bool mixed() const {
    return std::ranges::any_of(parts, [this](const SitePart& part) { return part.encoding != encoding; });
  }
  bool has_blocks() const {
    return std::ranges::any_of(parts, [](const SitePart& part) { return is_quantized(part.encoding); });
  }
  Bundle bundle() const { return {encoding, n_in, parts.size() == 3}; }
  Column column() const { return {encoding, n_out}; }
  ExpertMatrices expert() const {
    return {n_in, rows_per_neuron, parts[0].encoding, parts[1].encoding, parts[2].encoding};
  }
  // Of which a neuron has a column; of the others, if any, it has rows.
  std::span<const SitePart> column_parts() const {
    return std::span(parts).last(axis == Axis::neuron ? 1 : axis == Axis::channel ? parts.size() : 0);
  }
  // Blocks of sources run along their rows: columns of blocks are always encoded anew.
  bool columns_of_blocks() const { return !column_parts().empty() && is_quantized(encoding); }
  // Bytes of all neurons without padding.
  uint64_t tensor_bytes() const {
    switch (axis) {
      case Axis::row:
        break;
      case Axis::neuron:
        return uint64_t{neurons} * bundle().pieces() * bundle().row_bytes();
      case Axis::channel:
        return uint64_t{neurons} * column().encoded();
      case Axis::expert:
        return neurons * expert().tensor_bytes();
    }
    uint64_t bytes = 0;
    for (const SitePart& part : parts) bytes += part.rows * encoded_bytes(part.encoding, n_in);
    return bytes;
  }
  // Of each of a neuron's extents, padding included: to 4096 for rows and experts, which direct I/O brings to
  // their place. Bundles and columns are padded so where that costs at most 3 %, and else lie packed
  // (CONTRACTS, rule 6), as pieces do.
  uint64_t extent_bytes(uint32_t neuron) const {
    if (pieces > 1) return bundle().piece_bytes();
    const uint64_t bytes = neuron_bytes(*this, neuron);
    const uint64_t padded = align_up(bytes, kDirectIoAlignment);
    const bool large = axis == Axis::row || axis == Axis::expert;
    return large || within_padding(padded - bytes, bytes) ? padded : bytes;
  }
  uint32_t extent_of(uint32_t neuron, uint32_t piece) const {
    return first_extent + piece * neurons + stride * neuron;
  }
  // Behind its last extent. Of the channels of a group, those of other layers lie between.
  uint64_t end_extent() const {
    return first_extent + uint64_t{neurons - 1} * stride + (pieces - 1) * uint64_t{neurons} + 1;
  }
  // What one of its extents holds; of another's, nothing.
  struct Held {
    uint32_t neuron;
    uint32_t piece;  // of a neuron in pieces
  };
  std::optional<Held> held_by(uint32_t extent) const {
    if (extent < first_extent || extent >= end_extent()) return std::nullopt;
    const uint32_t index = extent - first_extent;
    if (stride == 1) return Held{index % neurons, index / neurons};
    if (index % stride != 0) return std::nullopt;
    return Held{index / stride, 0};
  }
  // What an arena slot of this site must hold: its largest neuron; the same for a neuron in pieces, whose
  // pieces lie in it as a bundle's do.
  uint64_t slot_bytes() const {
    uint64_t most = pieces * extent_bytes(0);
    for (uint32_t i = 1; mixed() && i < neurons; ++i) most = std::max(most, extent_bytes(i));
    return most;
  }
  // Whether its extents begin and end where direct I/O can read them.
  bool aligned() const { return extent_bytes(0) % kDirectIoAlignment == 0; }
};

// What one read brings, padding included. `offset` and `bytes` are multiples of 4096, of packed bundles
// of 64. The agent that reads has the same table: of channels there are so many that two would be felt.
using Extent = ExtentRef;

// A small tensor that is always in memory, as f32: norms, biases, learned positions.
struct ResidentTensor {
  std::string name;
  uint64_t rows = 0;
  uint64_t cols = 0;
  uint32_t extent = 0;
};

struct Provenance {
  std::string source;       // path as given
  std::string fingerprint;  // TensorSource::fingerprint when converted
  std::string made_by;      // "tierd 0.1.0"
};

struct Manifest {
  ModelConfig config;
  bool has_vocab = false;
  Vocab vocab;
  Layout layout = Layout::row;
  Bundling bundling = Bundling::row_column;
  uint32_t layer_group = 1;  // of layout channel-group: layers of a group; else 1
  ExpertCut experts = ExpertCut::whole;
  std::vector<StoredSite> sites;  // in the order of one step: embed, layer 0 qkv o up down, …, head
  std::vector<ResidentTensor> resident;
  std::vector<Extent> extents;  // in file order
  uint64_t data_bytes = 0;      // size of the data file
  uint64_t tensor_bytes = 0;    // of all weights without padding: what "50%" of a capacity refers to
  Provenance provenance;
};

// Reads and checks <directory>/manifest.json, the checksums and the size of the data file. Everything that
// later code relies on is checked here: counts, shapes against the configuration, extents inside the file, in
// order and not overlapping. Errors: not_found, corrupt, unsupported (format, layout), each naming the file
// and the key.
Result<Manifest> read_manifest(const std::string& directory);

}  // namespace tierd
