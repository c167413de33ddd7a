// Tables of random numbers for the predictor `low-rank`, which rank neurons one way or another.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/store/manifest.h"
#include "core/store/safetensors_writer.h"

namespace tierd {

// Of rank 4, for every network of the store that is cut into neurons.
inline void write_random_tables(const std::string& path, const Manifest& manifest) {
  constexpr uint32_t kRank = 4;
  std::vector<SafetensorsEntry> entries;
  std::vector<float> values;
  Random random(9);
  for (const StoredSite& site : manifest.sites) {
    if (!is_cut_into<Bundles>(site.cut)) continue;
    entries.push_back({site.name + ".a", "F32", {kRank, inputs(site.cut)}});
    entries.push_back({site.name + ".b", "F32", {site.neurons(), kRank}});
    for (uint32_t i = 0; i < kRank * (inputs(site.cut) + site.neurons()); ++i)
      values.push_back(random.symmetric());
  }
  auto writer = SafetensorsWriter::create(path, entries);
  ASSERT_TRUE(writer.ok()) << writer.error().line();
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(values))).ok());
  ASSERT_TRUE(writer->finish().ok());
}

}  // namespace tierd
