// Compares a store value by value with its source.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/model/layout/codec.h"
#include "core/model/layout/column.h"
#include "core/model/layout/row_group.h"
#include "core/store/source.h"
#include "core/store/store.h"
#include "tests/formats/files.h"

namespace tierd {

// Returns the values after encoding and decoding.
inline std::vector<float> through(Encoding e, const std::vector<float>& values) {
  std::vector<std::byte> encoded(encoded_bytes(e, values.size()));
  encode(e, values, encoded);
  std::vector<float> decoded(values.size());
  decode(e, encoded, decoded);
  return decoded;
}

// Neuron i of a feed-forward network: row i of gate and up, column i of down. Only columns of block encodings
// are encoded anew.
inline void expect_same_bundles(const TensorSource& source, const Manifest& manifest, const StoredSite& site,
                                std::span<const std::byte> data) {
  const Bundles& cut = std::get<Bundles>(site.cut);
  const Bundle bundle = cut.bundle(site.encodings);
  for (size_t part = 0; part < site.parts.size(); ++part) {
    const bool column = part + 1 == site.parts.size();
    const auto weights = source.read_f32(*source.find(site.parts[part].tensor));
    ASSERT_TRUE(weights.ok());
    for (uint64_t e = site.first_extent; e < site.end_extent(); ++e) {
      const auto [i, piece] = *site.held_by(static_cast<uint32_t>(e));
      if (site.pieces > 1 && piece != part) continue;
      const Extent& extent = manifest.extents[e];
      const uint64_t at_piece = extent.offset + (site.pieces > 1 ? 0 : part * bundle.piece_bytes());
      std::vector<float> found(cut.width);
      const auto decode_one = column ? decode_column : decode;
      decode_one(bundle.encoding, data.subspan(at_piece, bundle.row_bytes()), found);
      std::vector<float> expected(cut.width);
      for (uint32_t k = 0; k < cut.width; ++k) {
        const uint64_t at = column ? uint64_t{k} * cut.inner + i : uint64_t{i} * cut.width + k;
        expected[k] = (*weights)[at];
      }
      if (column) expected = through(bundle.encoding, expected);
      ASSERT_EQ(found, expected) << site.parts[part].tensor << " neuron " << i;
    }
  }
}

// Neuron i of a linear operator: column i of its parts. Block encodings are encoded anew.
inline void expect_same_columns(const TensorSource& source, const Manifest& manifest, const StoredSite& site,
                                std::span<const std::byte> data) {
  const Column column = site.column();
  std::vector<std::vector<float>> columns(site.neurons(), std::vector<float>(column.values()));
  uint32_t row = 0;
  for (const SitePart& part : site.parts) {
    const auto weights = source.read_f32(*source.find(part.tensor));
    ASSERT_TRUE(weights.ok());
    for (uint32_t r = 0; r < part.rows; ++r, ++row) {
      for (uint32_t i = 0; i < site.neurons(); ++i)
        columns[i][row] = (*weights)[uint64_t{r} * site.neurons() + i];
    }
  }
  for (uint32_t i = 0; i < site.neurons(); ++i) {
    const Extent& extent = manifest.extents[site.extent_of(i, 0)];
    std::vector<std::byte> expected(extent.bytes);
    encode_column(column.encoding, columns[i], std::span(expected).first(column.encoded()));
    ASSERT_TRUE(std::ranges::equal(data.subspan(extent.offset, extent.bytes), expected))
        << site.name << " channel " << i;
  }
}

// Neuron i of a mixture: gate, up and down of expert i in row groups, each matrix at its offset.
inline void expect_same_experts(const TensorSource& source, const Manifest& manifest, const StoredSite& site,
                                std::span<const std::byte> data) {
  const ExpertMatrices matrices = std::get<Experts>(site.cut).matrices(site.encodings);
  const uint64_t offsets[] = {0, matrices.up_offset(), matrices.down_offset()};
  for (uint32_t expert = 0; expert < site.neurons(); ++expert) {
    const uint64_t extent = manifest.extents[site.extent_of(expert, 0)].offset;
    for (size_t p = 0; p < 3; ++p) {
      const TensorInfo& tensor = *source.find(tensor_of_expert(site.parts[p], expert));
      const auto expected = source.read_f32(tensor);
      ASSERT_TRUE(expected.ok());
      const Encoding encoding = site.encodings[p];
      const uint64_t size = group_bytes(encoding, static_cast<uint32_t>(tensor.cols));
      for (uint32_t r = 0; r < tensor.rows; ++r) {
        std::vector<float> found(tensor.cols);
        unpack_row(encoding, r % kGroupRows, data.subspan(extent + offsets[p] + r / kGroupRows * size, size),
                   found);
        const auto begin = expected->begin() + static_cast<std::ptrdiff_t>(r * tensor.cols);
        ASSERT_TRUE(std::equal(found.begin(), found.end(), begin)) << tensor.name << " row " << r;
      }
    }
  }
}

// Expects that every row of every tensor, unpacked from the store, equals the source's.
inline void expect_same_weights(const TensorSource& source, const std::string& directory) {
  const auto store = Store::open(directory);
  ASSERT_TRUE(store.ok()) << store.error().line();
  ASSERT_TRUE(store->verify_all(true).ok());
  const std::string data = file_text(store->data_path());
  const auto bytes = std::as_bytes(std::span(data));
  for (const StoredSite& site : store->manifest().sites) {
    if (is_cut_into<Bundles>(site.cut)) {
      expect_same_bundles(source, store->manifest(), site, bytes);
      continue;
    }
    if (is_cut_into<Columns>(site.cut)) {
      expect_same_columns(source, store->manifest(), site, bytes);
      continue;
    }
    if (is_cut_into<Experts>(site.cut)) {
      expect_same_experts(source, store->manifest(), site, bytes);
      continue;
    }
    const Rows& cut = std::get<Rows>(site.cut);
    uint32_t row = 0;
    for (const SitePart& part : site.parts) {
      const auto expected = source.read_f32(*source.find(part.tensor));
      ASSERT_TRUE(expected.ok());
      for (uint32_t r = 0; r < part.rows; ++r, ++row) {
        const uint32_t neuron = row / cut.rows;
        const uint32_t group = row % cut.rows / kGroupRows;
        const Encoding encoding = cut.encoding_of(neuron, site.encodings);
        const uint64_t size = group_bytes(encoding, cut.n_in);
        const Extent& extent = store->manifest().extents[site.first_extent + neuron];
        std::vector<float> found(cut.n_in);
        unpack_row(encoding, row % kGroupRows, bytes.subspan(extent.offset + group * size, size), found);
        const auto begin = expected->begin() + static_cast<std::ptrdiff_t>(uint64_t{r} * cut.n_in);
        ASSERT_TRUE(std::equal(found.begin(), found.end(), begin)) << part.tensor << " row " << r;
      }
    }
  }
  for (const ResidentTensor& resident : store->manifest().resident) {
    const auto expected = source.read_f32(*source.find(resident.name));
    std::vector<float> found(resident.rows * resident.cols);
    std::memcpy(found.data(), data.data() + store->manifest().extents[resident.extent].offset,
                found.size() * 4);
    EXPECT_EQ(found, *expected) << resident.name;
  }
}

}  // namespace tierd
