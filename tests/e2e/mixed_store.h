// Stores of golden models in several encodings, and a predictor and a quantizer that mix them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/random.h"
#include "core/store/manifest.h"
#include "core/store/source.h"
#include "core/store/writer.h"
#include "tests/e2e/golden_model.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {

// Writes the model's store at `directory` and returns a configuration that runs it.
inline Config store_of_editions(const std::string& model, const std::string& directory, Layout layout,
                                const std::vector<Encoding>& editions) {
  Config config = golden_config(model);
  const auto source = open_source(config.model);
  EXPECT_TRUE(source.ok()) << source.error().line();
  config.model = directory;
  WriteOptions options{.neuron_bytes = 4096, .layout = layout, .quiet = true};
  options.editions = editions;
  const Status written = write_store(**source, directory, options);
  EXPECT_TRUE(written.ok()) << written.error().line();
  return config;
}

// Predicts three of five neurons of each network that is cut into neurons. Tables of random numbers beside
// the store rank them.
inline void use_random_ranks(Config& config) {
  constexpr uint32_t kRank = 4;
  const auto manifest = read_manifest(config.model);
  ASSERT_TRUE(manifest.ok()) << manifest.error().line();
  std::vector<SafetensorsEntry> entries;
  std::vector<float> values;
  Random random(9);
  for (const StoredSite& site : manifest->sites) {
    if (!is_cut_into<Bundles>(site.cut)) continue;
    entries.push_back({site.name + ".a", "F32", {kRank, inputs(site.cut)}});
    entries.push_back({site.name + ".b", "F32", {site.neurons(), kRank}});
    for (uint32_t i = 0; i < kRank * (inputs(site.cut) + site.neurons()); ++i)
      values.push_back(random.symmetric());
  }
  const std::string tables = config.model + ".tables.safetensors";
  auto writer = SafetensorsWriter::create(tables, entries);
  ASSERT_TRUE(writer.ok()) << writer.error().line();
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(values))).ok());
  ASSERT_TRUE(writer->finish().ok());
  config.predictor = {"low-rank", {}, tables, {{"keep", 0.6, "test"}}};
}

// Returns "q8_0,q4_0".
inline std::string listed(const std::vector<Encoding>& encodings) {
  std::string list;
  for (const Encoding encoding : encodings) list += (list.empty() ? "" : ",") + std::string(name(encoding));
  return list;
}

inline void mix(Config& config, const std::string& ratios) {
  config.quantizer = {"mixed", {}, {}, {{"ratios", ratios, "test"}}};
}

}  // namespace tierd
