// A store is a directory: `manifest.json`, one data file and the checksums of its extents. The manifest
// describes the model, its sites and the position of each neuron's bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/agent/extent_table.h"
#include "core/base/align.h"
#include "core/base/enum_names.h"
#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/layout/bitmap.h"
#include "core/model/layout/cut.h"
#include "core/model/text/vocab.h"

namespace tierd {

inline constexpr uint32_t kStoreFormat = 11;
// Formats of stores whose experts are whole, and of stores without editions. They are still written and read,
// so that no model needs converting again for a feature that its store does not use.
inline constexpr uint32_t kFormatWithWholeExperts = 10;
inline constexpr uint32_t kFormatWithoutEditions = 9;
inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::string_view kDataFile = "weights.bin";
inline constexpr std::string_view kChecksumFile = "checksums.bin";
inline constexpr uint32_t kNoLayer = UINT32_MAX;
inline constexpr uint32_t kNoSite = UINT32_MAX;
inline constexpr uint32_t kNoExpert = UINT32_MAX;

enum class Layout : uint8_t {
  row,     // every dense operator is cut into runs of output rows
  neuron,  // as row, but feed-forward networks are cut into bundles: a row of gate, a row of up and a column
           // of down
  channel_group,  // the layers' operators are cut into input channels; channel i of all layers of a group is
                  // contiguous, layer after layer
};
constexpr std::array<std::string_view, 3> names_of(Layout) {
  return {"row", "neuron", "channel-group"};
}

// The order of bundles in the file, in layout neuron.
enum class Bundling : uint8_t {
  row_column,  // the parts of a neuron are contiguous: one read
  none,  // all rows of gate, all rows of up, all columns of down: two or three reads a neuron, for comparison
};
constexpr std::array<std::string_view, 2> names_of(Bundling) {
  return {"row-column", "none"};
}

// How the experts of a mixture are cut in layout channel_group; in the other layouts they are whole.
enum class ExpertCut : uint8_t {
  whole,     // all experts of a layer are the neurons of one site
  channels,  // each expert has sites of its own, cut into input channels as the other operators are
};
constexpr std::array<std::string_view, 2> names_of(ExpertCut) {
  return {"whole", "channels"};
}

// The operators of a layer that share an input and are stacked into one matrix.
enum class OpGroup : uint8_t {
  embed,  // rows picked by token id
  qkv,    // q, k and v, stacked in this order
  o,
  up,  // gate, then up, if the model is gated; otherwise up
  down,
  head,
  ffn,        // gate, up and down, cut into neurons
  experts,    // gate, up and down of each expert of a mixture, each expert a neuron
  expert_up,  // `up` of one expert
  expert_down,
};
constexpr std::array<std::string_view, 10> names_of(OpGroup) {
  return {"embed", "qkv", "o", "up", "down", "head", "ffn", "experts", "expert-up", "expert-down"};
}

// The largest padding that alignment may cost: 3 %.
inline constexpr uint64_t kPaddingPercent = 3;
constexpr bool within_padding(uint64_t padding, uint64_t bytes) {
  return padding * 100 <= kPaddingPercent * bytes;
}

// The largest size of an expert, which is one read and one slot.
inline constexpr uint64_t kLargestExpertBytes = 1u << 30;

// The largest layer group of any store.
inline constexpr uint32_t kMostLayersOfGroup = 1024;
// Returns the number of layers in the group of this layer; the last group may have fewer.
constexpr uint32_t layers_of_group(uint32_t n_layers, uint32_t layer_group, uint32_t layer) {
  return std::clamp(n_layers - (layer - layer % layer_group), 1u, layer_group);
}

// One of the operators that are stacked in a site.
struct SitePart {
  std::string tensor;  // tierd's name, e.g. "layers.3.q"; for experts, "layers.3.experts.*.up"
  uint32_t rows = 0;   // output rows; for experts, of each expert
};
// Returns the name of the part's tensor in one expert.
std::string tensor_of_expert(const SitePart& part, uint32_t expert);

// A site, its cut, and the extents of its neurons: neuron i is extent first_extent + stride * i; of bundles
// in pieces, piece p of neuron i is extent first_extent + p * neurons + i. The stride of channels is the
// number of layers in their group, whose sites begin one extent apart; the stride of an expert's channels is
// 1, since the next layers' routers choose other experts.
struct StoredSite {
  std::string name;  // "embed", "layers.3.qkv", "layers.3.experts.5.up", "head"
  OpGroup group = OpGroup::qkv;
  uint32_t layer = kNoLayer;
  uint32_t expert = kNoExpert;  // the expert whose operator this is, if experts are cut into channels
  Cut cut;
  std::vector<SitePart> parts;  // the operators stacked in the site
  Encodings encodings;          // [parts] encodings in the store
  Compression compression = Compression::none;
  // [neurons] bytes of each compressed neuron; empty if the site is dense. A codec makes no extent larger
  // than the dense neuron's.
  std::vector<uint32_t> compressed;
  uint32_t first_extent = 0;
  uint32_t stride = 1;
  uint32_t pieces = 1;            // extents of a neuron; more than one only with Bundling::none
  uint32_t alias_of = kNoSite;    // tied head: index of the embedding, whose extents it shares
  uint32_t edition_of = kNoSite;  // further edition: index of the site with the same neurons
  // The loss of encoding parts again: sqrt(sum (stored - source)^2 / sum source^2) over them. Nothing if the
  // store keeps the source's values.
  std::optional<float> encoding_error;

  uint32_t neurons() const { return tierd::neurons(cut); }
  uint64_t dense_bytes(uint32_t neuron) const { return tierd::neuron_bytes(cut, encodings, neuron); }
  uint64_t neuron_bytes(uint32_t neuron) const {
    return compressed.empty() ? dense_bytes(neuron) : compressed[neuron];
  }
  // Bytes of all neurons without padding.
  uint64_t tensor_bytes() const {
    if (compressed.empty()) return tierd::tensor_bytes(cut, encodings);
    return std::accumulate(compressed.begin(), compressed.end(), uint64_t{0});
  }

  // The number of parts, counted from the last, of which a neuron has a column; it has rows of the others.
  size_t n_column_parts() const {
    return is_cut_into<Columns>(cut) ? parts.size() : is_cut_into<Bundles>(cut) ? 1 : 0;
  }
  bool is_column(size_t part) const { return part + n_column_parts() >= parts.size(); }
  // The column that each neuron has: all parts of a channel together; of a bundle, the column of down.
  Column column() const { return {encodings.front(), outputs(cut)}; }
  std::span<const SitePart> column_parts() const { return std::span(parts).last(n_column_parts()); }
  // The number of columns that the rows of a part have in the source.
  uint32_t columns_of(size_t part) const {
    const auto* experts = std::get_if<Experts>(&cut);
    return experts != nullptr && part == 2 ? experts->inner : inputs(cut);
  }
  // Whether the neurons have columns of a block encoding. Blocks of sources run along their rows, so such
  // columns are always encoded again.
  bool columns_of_blocks() const { return n_column_parts() != 0 && is_quantized(encodings.front()); }

  // The bytes of each of a neuron's extents, padding included. Rows and experts, which direct I/O reads into
  // their slots, are padded to 4096. Bundles and columns are padded to 4096 if that costs at most 3 %,
  // otherwise packed. Pieces and compressed columns are packed.
  uint64_t extent_bytes(uint32_t neuron) const {
    if (!compressed.empty())
      return align_up(compressed[neuron], n_column_parts() == 0 ? kDirectIoAlignment : kPieceAlignment);
    if (pieces > 1) return std::get<Bundles>(cut).bundle(encodings).piece_bytes();
    const uint64_t bytes = neuron_bytes(neuron);
    const uint64_t padded = align_up(bytes, kDirectIoAlignment);
    return n_column_parts() == 0 || within_padding(padded - bytes, bytes) ? padded : bytes;
  }
  uint32_t extent_of(uint32_t neuron, uint32_t piece) const {
    return first_extent + piece * neurons() + stride * neuron;
  }
  // One past its last extent. Between the extents of its channels are those of the other layers of the group.
  uint64_t end_extent() const {
    return first_extent + uint64_t{neurons() - 1} * stride + (pieces - 1) * uint64_t{neurons()} + 1;
  }
  // The neuron whose bytes an extent of this site holds.
  struct Held {
    uint32_t neuron;
    uint32_t piece;  // of bundles in pieces
  };
  // Returns nothing for an extent of another site.
  std::optional<Held> held_by(uint32_t extent) const {
    if (extent < first_extent || extent >= end_extent()) return std::nullopt;
    const uint32_t index = extent - first_extent;
    if (stride == 1) return Held{index % neurons(), index / neurons()};
    if (index % stride != 0) return std::nullopt;
    return Held{index / stride, 0};
  }
  // The bytes of an arena slot of this site: its largest neuron, padded. A slot holds all pieces of a neuron.
  uint64_t slot_bytes() const {
    uint64_t most = pieces * extent_bytes(0);
    const bool differ = !compressed.empty() || (encodings.mixed() && n_column_parts() == 0);
    for (uint32_t i = 1; differ && i < neurons(); ++i) most = std::max(most, extent_bytes(i));
    return most;
  }
  // The same if neurons are expanded on arrival; expanded neurons are never read directly into their slots.
  uint64_t expanded_slot_bytes() const {
    if (compressed.empty()) return slot_bytes();
    uint64_t most = 0;
    for (uint32_t i = 0; i < neurons(); ++i) most = std::max(most, dense_bytes(i));
    return align_up(most, n_column_parts() == 0 ? kDirectIoAlignment : kPieceAlignment);
  }
  // Whether all of its extents begin and end at multiples of 4096, as direct I/O needs.
  bool aligned() const {
    return compressed.empty() ? extent_bytes(0) % kDirectIoAlignment == 0 : n_column_parts() == 0;
  }
};

// The bytes of one read, padding included. `offset` and `bytes` are multiples of 4096, of packed bundles of
// 64. The type is that of the flash agent, which uses the same table: channels are so many that a second
// table would take noticeable memory.
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
  uint32_t layer_group = 1;  // layout channel-group: layers of a group; else 1
  ExpertCut experts = ExpertCut::whole;
  // The requested compression. A site has it only if that makes the site smaller.
  Compression compression = Compression::none;
  std::string codec;              // the codec's name if the compression is a codec; else empty
  std::string codec_settings;     // NeuronCodec::settings of that codec
  std::vector<StoredSite> sites;  // in the order of one step: embed, layer 0 qkv o up down, …, head
  // Further editions of some sites: the same neurons in an encoding of fewer bits. Sorted by site; each
  // edition of a site has fewer bits than the one before.
  std::vector<StoredSite> editions;
  std::vector<ResidentTensor> resident;
  std::vector<Extent> extents;  // in file order
  uint64_t data_bytes = 0;      // size of the data file
  uint64_t tensor_bytes = 0;    // of all weights without padding: the base of a capacity in percent
  Provenance provenance;

  // Returns the sites and editions that have extents of their own, in the order of their extents.
  std::vector<const StoredSite*> stored() const;
  std::vector<StoredSite*> stored();

  // "none", "bitmap" or the codec's name.
  std::string_view compression_name() const {
    return compression == Compression::codec ? std::string_view(codec) : name(compression);
  }
};

// Reads and checks <directory>/manifest.json, the checksums and the size of the data file. It checks
// everything that later code relies on: counts, shapes against the configuration, extents inside the file, in
// order and not overlapping. Errors: not_found, corrupt, unsupported (format, layout), each naming the file
// and the key.
Result<Manifest> read_manifest(const std::string& directory);

}  // namespace tierd
