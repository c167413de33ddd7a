#include "core/store/manifest_check.h"

#include <fmt/format.h>

#include "core/store/encoding_choice.h"
#include "core/store/planner.h"

namespace tierd {
namespace {

class Checker {
 public:
  Checker(const Manifest& manifest, std::string_view origin) : manifest_(manifest), origin_(origin) {}

  Status check() {
    TIERD_TRY(check_vocab());
    TIERD_TRY(check_extents());
    used_.assign(manifest_.extents.size(), false);
    TIERD_TRY(check_resident());
    TIERD_TRY(check_sites());
    for (size_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) return bad(fmt::format("extents[{}]", i), "is used by no site and no resident tensor");
    }
    if (manifest_.tensor_bytes != tensor_bytes_) {
      return differs("tensor_bytes", manifest_.tensor_bytes, tensor_bytes_);
    }
    return {};
  }

 private:
  Error bad(std::string_view key, std::string_view what) const {
    return {Code::corrupt, std::string(origin_), fmt::format("{}: {}", key, what)};
  }
  template <class Found, class Expected>
  Error differs(std::string_view key, const Found& found, const Expected& expected) const {
    return bad(key, fmt::format("is {}, expected {}", found, expected));
  }

  Status check_vocab() const {
    if (!manifest_.has_vocab) return {};
    const Vocab& vocab = manifest_.vocab;
    const size_t pieces = vocab.pieces.size();
    if (pieces > manifest_.config.vocab_size) {
      return bad("vocab.pieces",
                 fmt::format("has {} entries, but the embedding has {} rows; expected at most as many",
                             pieces, manifest_.config.vocab_size));
    }
    if (vocab.types.size() != pieces) return differs("vocab.types' length", vocab.types.size(), pieces);
    if (!vocab.scores.empty() && vocab.scores.size() != pieces) {
      return differs("vocab.scores' length", vocab.scores.size(), pieces);
    }
    for (const uint32_t id : {vocab.bos, vocab.eos, vocab.unknown}) {
      if (id != kNoToken && id >= pieces) {
        return bad("vocab", fmt::format("has token {}, expected a number below {}", id, pieces));
      }
    }
    for (const auto& [key, list] :
         {std::pair{"vocab.end_tokens", &vocab.end_tokens}, std::pair{"vocab.after_bos", &vocab.after_bos}}) {
      for (const uint32_t id : *list) {
        if (id >= pieces)
          return bad(key, fmt::format("has token {}, expected a number below {}", id, pieces));
      }
    }
    for (const AddedToken& added : vocab.added_tokens.value_or(std::vector<AddedToken>())) {
      if (added.token >= pieces)
        return bad("vocab.added_tokens",
                   fmt::format("has token {}, expected a number below {}", added.token, pieces));
    }
    return {};
  }

  Status check_extents() const {
    uint64_t end = 0;
    for (size_t i = 0; i < manifest_.extents.size(); ++i) {
      const Extent& extent = manifest_.extents[i];
      const auto key = [i] { return fmt::format("extents[{}]", i); };
      if (extent.bytes == 0 || extent.bytes % kPieceAlignment != 0 || extent.offset % kPieceAlignment != 0) {
        return bad(key(), fmt::format("has offset {} and {} bytes, expected multiples of {}", extent.offset,
                                      extent.bytes, kPieceAlignment));
      }
      if (extent.offset < end) {
        return bad(key(), fmt::format("starts at {}, inside the extent before it, which ends at {}",
                                      extent.offset, end));
      }
      if (extent.offset > manifest_.data_bytes || extent.bytes > manifest_.data_bytes - extent.offset) {
        return bad(key(), fmt::format("has offset {} and {} bytes, outside the {} bytes of data",
                                      extent.offset, extent.bytes, manifest_.data_bytes));
      }
      end = extent.offset + extent.bytes;
    }
    // The data ends with a whole block, so that direct I/O can read the last extent.
    const uint64_t expected = align_up(end, kDirectIoAlignment);
    if (expected != manifest_.data_bytes) return differs("data_bytes", manifest_.data_bytes, expected);
    return {};
  }

  // Marks the extent, which must have `bytes` bytes, as used by the neuron or tensor that `key()` names.
  template <class Key>
  Status use(uint64_t extent, uint64_t bytes, bool aligned, Key key) {
    if (extent >= used_.size()) {
      return bad(key(), fmt::format("uses extent {}, expected a number below {}", extent, used_.size()));
    }
    if (used_[extent]) return bad(key(), fmt::format("shares extent {} with another", extent));
    used_[extent] = true;
    const Extent& found = manifest_.extents[extent];
    if (found.bytes != bytes) {
      return differs(fmt::format("extents[{}].bytes ({})", extent, key()), found.bytes, bytes);
    }
    if (aligned && found.offset % kDirectIoAlignment != 0) {
      return bad(fmt::format("extents[{}] ({})", extent, key()),
                 fmt::format("has offset {}, expected a multiple of {}", found.offset, kDirectIoAlignment));
    }
    return {};
  }

  Status check_resident() {
    const std::vector<TensorSpec> expected = resident_shapes(manifest_.config);
    if (manifest_.resident.size() != expected.size()) {
      return differs("resident's length", manifest_.resident.size(), expected.size());
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const ResidentTensor& found = manifest_.resident[i];
      const std::string key = fmt::format("resident[{}]", i);
      if (found.name != expected[i].name) return differs(key + ".name", found.name, expected[i].name);
      if (found.rows != expected[i].rows) return differs(key + ".rows", found.rows, expected[i].rows);
      if (found.cols != expected[i].cols) return differs(key + ".cols", found.cols, expected[i].cols);
      const uint64_t bytes = found.rows * encoded_bytes(Encoding::f32, found.cols);
      TIERD_TRY(use(found.extent, align_up(bytes, kDirectIoAlignment), true, [&key] { return key; }));
      tensor_bytes_ += bytes;
    }
    return {};
  }

  Status check_sites() {
    if (manifest_.layout != Layout::neuron && manifest_.bundling != Bundling::row_column) {
      return bad("bundling", fmt::format("is '{}', but layout {} has no bundles", name(manifest_.bundling),
                                         name(manifest_.layout)));
    }
    // A manifest with a mixture in this layout would have the sites of layout row.
    if (manifest_.layout == Layout::neuron && manifest_.config.is_mixture())
      return bad("layout", "is 'neuron', which is not supported for a mixture");
    for (size_t i = 0; i < manifest_.sites.size(); ++i)
      TIERD_TRY(check_site(fmt::format("sites[{}]", i), manifest_.sites[i]));
    for (size_t i = 0; i < manifest_.editions.size(); ++i)
      TIERD_TRY(check_edition(fmt::format("editions[{}]", i), i));
    return {};
  }

  Status check_edition(const std::string& key, size_t i) {
    const StoredSite& edition = manifest_.editions[i];
    if (!may_have_editions(edition))
      return bad(key, fmt::format("is an edition of {}, which can have one encoding only", edition.name));
    const bool first = i == 0 || manifest_.editions[i - 1].edition_of != edition.edition_of;
    const StoredSite& before = first ? manifest_.sites[edition.edition_of] : manifest_.editions[i - 1];
    if (!has_fewer_bits(edition.encodings, before.encodings)) {
      return bad(key + ".encodings", fmt::format("have no fewer bits than {}, the edition before it",
                                                 name(before.encodings.front())));
    }
    return check_site(key, edition);
  }

  Status check_site(const std::string& key, const StoredSite& site) {
    if (site.encoding_error && !(*site.encoding_error >= 0)) {
      return bad(key + ".encoding_error", fmt::format("is {}, expected a share", *site.encoding_error));
    }
    if (!site.encoding_error && site.columns_of_blocks())
      return bad(key + ".encoding_error", "is null, but its columns were converted to another encoding");
    if (site.n_column_parts() != 0 && site.encodings.mixed())
      return bad(key + ".encodings", "differ, expected one encoding for all columns");
    if (site.n_column_parts() != 0 && !has_columns(site.encodings.front()))
      return bad(key + ".encodings",
                 fmt::format("{} is supported for rows only", name(site.encodings.front())));
    for (size_t part = 0; part < site.parts.size(); ++part) {
      if (is_cut_into<Columns>(site.cut)) break;  // columns are padded with zeros
      const uint32_t cols = site.columns_of(part);
      if (cols % block_values(site.encodings[part]) != 0) {
        return bad(key + ".encodings",
                   fmt::format("{} does not fit rows of {} columns", name(site.encodings[part]), cols));
      }
    }
    if (const auto* rows = std::get_if<Rows>(&site.cut)) TIERD_TRY(check_rows(key, site, *rows));
    if (const auto* experts = std::get_if<Experts>(&site.cut)) {
      if (const uint64_t bytes = experts->matrices(site.encodings).bytes(); bytes > kLargestExpertBytes)
        return bad(key, fmt::format("experts of {} bytes, expected at most {}", bytes, kLargestExpertBytes));
    }
    if (site.compression != Compression::none) TIERD_TRY(check_compressed(key, site));
    return site.alias_of == kNoSite ? use_neurons(site) : check_alias(key, site);
  }

  Status check_compressed(const std::string& key, const StoredSite& site) const {
    if (manifest_.compression != site.compression)
      return bad(key + ".compression", "differs from the store's");
    if (manifest_.layout == Layout::channel_group || site.pieces > 1)
      return bad(key + ".compression", "is set, but the neurons are not stored in one piece");
    if (site.compression == Compression::codec) return check_sizes_by_codec(key, site);
    const auto bitmap = Bitmap::of(site.cut, site.encodings);
    if (!bitmap)
      return bad(key + ".compression", fmt::format("is not supported with {}", name(site.encodings.front())));
    for (uint32_t i = 0; i < site.neurons(); ++i) {
      const uint64_t dense = site.dense_bytes(i), bits = bitmap->bits_bytes(dense),
                     bytes = site.compressed[i];
      if (bytes >= bits && bytes <= bits + dense && (bytes - bits) % bitmap->element_bytes == 0) continue;
      return bad(
          fmt::format("{}.compressed", key),
          fmt::format(
              "neuron {} has {} bytes, expected {} bytes of bits plus a multiple of {}, at most {} in all", i,
              bytes, bits, bitmap->element_bytes, bits + dense));
    }
    return {};
  }

  // A codec's output may have any size as long as its extent is no larger than the dense neuron's.
  Status check_sizes_by_codec(const std::string& key, const StoredSite& site) const {
    StoredSite dense = site;
    dense.compressed.clear();
    for (uint32_t i = 0; i < site.neurons(); ++i) {
      if (site.extent_bytes(i) <= dense.extent_bytes(i)) continue;
      return bad(key + ".compressed", fmt::format("neuron {} has {} bytes, expected at most {}", i,
                                                  site.compressed[i], dense.extent_bytes(i)));
    }
    return {};
  }

  Status check_rows(const std::string& key, const StoredSite& site, const Rows& rows) const {
    const uint64_t padded_rows = align_up(rows.outputs(), kGroupRows);
    if (rows.rows == 0 || rows.rows % kGroupRows != 0 || rows.rows > padded_rows) {
      return bad(key + ".rows_per_neuron", fmt::format("is {}, expected a multiple of {} up to {}", rows.rows,
                                                       kGroupRows, padded_rows));
    }
    for (size_t part = 0; site.encodings.mixed() && part + 1 < rows.stacked.size(); ++part) {
      if (rows.stacked[part] % rows.rows != 0) {
        return bad(key + ".rows_per_neuron",
                   fmt::format(
                       "is {}, expected a divisor of the {} rows of {}, because its parts differ in encoding",
                       rows.rows, rows.stacked[part], site.parts[part].tensor));
      }
    }
    return {};
  }

  Status check_alias(const std::string& key, const StoredSite& site) const {
    const StoredSite& target = manifest_.sites[site.alias_of];  // the embedding, an earlier site
    if (site.encodings == target.encodings && site.compressed == target.compressed &&
        site.first_extent == target.first_extent &&
        std::get<Rows>(site.cut).rows == std::get<Rows>(target.cut).rows)
      return {};
    return bad(key, fmt::format("shares the weights of {}, but differs from it in encoding, extents or rows",
                                target.name));
  }

  Status use_neurons(const StoredSite& site) {
    if (site.end_extent() > used_.size()) {
      return bad(
          fmt::format("{} first_extent", site.name),
          fmt::format("uses extent {}, expected a number below {}", site.end_extent() - 1, used_.size()));
    }
    for (uint64_t extent = site.first_extent; extent < site.end_extent(); ++extent) {
      const auto held = site.held_by(static_cast<uint32_t>(extent));
      if (!held) continue;
      TIERD_TRY(use(extent, site.extent_bytes(held->neuron), site.aligned(),
                    [&] { return fmt::format("{} neuron {}", site.name, held->neuron); }));
    }
    tensor_bytes_ += site.tensor_bytes();
    return {};
  }

  const Manifest& manifest_;
  std::string_view origin_;
  std::vector<bool> used_;
  uint64_t tensor_bytes_ = 0;
};

}  // namespace

Status check_manifest(const Manifest& manifest, std::string_view origin) {
  return Checker(manifest, origin).check();
}

}  // namespace tierd
