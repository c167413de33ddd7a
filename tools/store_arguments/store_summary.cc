#include "tools/store_arguments/store_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/units.h"

namespace tierd {
namespace {

// Returns "q4_k+q6_k" for a site whose parts differ, "f16 bitmap" for a compressed one.
std::string encodings_of(const StoredSite& site, std::string_view compression) {
  std::string text(name(site.encodings.front()));
  for (const Encoding encoding : site.encodings) {
    if (text.find(name(encoding)) == std::string::npos) text += fmt::format("+{}", name(encoding));
  }
  if (site.compression != Compression::none) text += fmt::format(" {}", compression);
  return text;
}

// One row of the summary: all sites of an operator group and encoding.
struct GroupTotals {
  uint32_t sites = 0;
  uint64_t neurons = 0;
  uint64_t neuron_bytes = 0;  // the largest
  uint64_t bytes = 0;         // without padding
  uint64_t dense = 0;         // without compression
  uint64_t slots = 0;         // if all neurons are in slots
  bool compressed = false;
  uint64_t stored = 0;
  std::optional<float> worst_error;  // of neurons that were encoded anew
};

std::string size(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}
double padding_percent(uint64_t stored, uint64_t bytes) {
  return bytes == 0 ? 0 : 100.0 * static_cast<double>(stored - bytes) / static_cast<double>(bytes);
}

using Groups = std::map<std::pair<OpGroup, std::string>, GroupTotals>;

// Describes the bytes that compression saved, and those that slots of the largest neuron waste.
std::string compression_summary(const Manifest& manifest, const Groups& groups) {
  const std::string_view by = manifest.compression_name();
  GroupTotals all;
  for (const auto& [key, totals] : groups) {
    if (!totals.compressed) continue;
    all.sites += totals.sites;
    all.bytes += totals.bytes;
    all.stored += totals.stored;
    all.dense += totals.dense;
    all.slots += totals.slots;
  }
  if (all.sites == 0) {
    return fmt::format(
        "{} makes no matrix smaller, so all are dense; prune the model first with tier prune, or set larger "
        "neurons with --neuron-bytes\n",
        by);
  }
  const auto share = [](uint64_t part, uint64_t whole) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  };
  std::string text = fmt::format("{}: {} sites of {} take {}, {:.2f} % of them", by, all.sites,
                                 size(all.dense), size(all.bytes), share(all.bytes, all.dense));
  if (manifest.compression == Compression::codec)
    return fmt::format("{} ({})\n", text, manifest.codec_settings);
  return fmt::format("{}; slots of the largest neuron take {:.2f} % more\n", text,
                     share(all.slots, all.stored) - 100);
}

}  // namespace

std::string store_summary(const Store& store) {
  const Manifest& manifest = store.manifest();
  const ModelConfig& config = manifest.config;
  Groups groups;
  for (const StoredSite* stored : manifest.stored()) {
    const StoredSite& site = *stored;
    GroupTotals& totals = groups[{site.group, encodings_of(site, manifest.compression_name())}];
    totals.sites += 1;
    totals.compressed = site.compression != Compression::none;
    totals.neurons += site.neurons();
    for (uint32_t i = 0; i < site.neurons(); ++i)
      totals.neuron_bytes = std::max(totals.neuron_bytes, site.neuron_bytes(i));
    totals.bytes += site.tensor_bytes();
    totals.dense += tensor_bytes(site.cut, site.encodings);
    totals.slots += site.neurons() * site.slot_bytes();
    totals.worst_error = std::max(totals.worst_error, site.encoding_error);
    for (uint64_t extent = site.first_extent; extent < site.end_extent(); ++extent) {
      if (site.held_by(static_cast<uint32_t>(extent))) totals.stored += manifest.extents[extent].bytes;
    }
  }
  std::string text =
      fmt::format("{}: {} ({}), {} layers, width {}, {} of weights\n", store.directory(), config.name,
                  config.architecture, config.n_layers, config.d_model, size(manifest.tensor_bytes));
  text += fmt::format("{:<10} {:>6} {:>11} {:>9} {:>10} {:>10} {:>9} {:>13}\n", "operator", "sites",
                      "encoding", "neurons", "a neuron", "bytes", "padding", "error, up to");
  for (const auto& [key, totals] : groups) {
    text += fmt::format("{:<10} {:>6} {:>11} {:>9} {:>10} {:>10} {:>7.2f} % {:>13}\n", name(key.first),
                        totals.sites, key.second, totals.neurons, size(totals.neuron_bytes),
                        size(totals.bytes), padding_percent(totals.stored, totals.bytes),
                        totals.worst_error ? fmt::format("{:.2f} %", 100 * *totals.worst_error) : "none");
  }
  GroupTotals resident;
  for (const ResidentTensor& tensor : manifest.resident) {
    resident.bytes += tensor.rows * encoded_bytes(Encoding::f32, tensor.cols);
    resident.stored += manifest.extents[tensor.extent].bytes;
  }
  text += fmt::format("{:<10} {:>6} {:>11} {:>9} {:>10} {:>10} {:>7.2f} % {:>13}\n", "resident",
                      manifest.resident.size(), "f32", "", "", size(resident.bytes),
                      padding_percent(resident.stored, resident.bytes), "none");
  if (config.tied_embeddings) text += "the head shares the embedding's extents\n";
  const auto lossy = [](const StoredSite* site) { return site->encoding_error.has_value(); };
  if (std::ranges::any_of(manifest.stored(), lossy)) {
    text +=
        "error: of weights that were converted to another encoding (or columns of blocks), relative to the "
        "source\n";
  }
  if (manifest.compression != Compression::none) text += compression_summary(manifest, groups);
  text += fmt::format(
      "{} on disk in {} extents, padding {:.2f} %; {}\n", size(manifest.data_bytes), manifest.extents.size(),
      padding_percent(manifest.data_bytes, manifest.tensor_bytes),
      manifest.has_vocab ? fmt::format("{} tokens", manifest.vocab.pieces.size()) : "no tokenizer");
  return text;
}

}  // namespace tierd
