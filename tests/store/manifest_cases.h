// Plans shared by tests of the manifest, and functions that damage a manifest and expect that it is refused.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/base/checksum.h"
#include "core/store/manifest.h"
#include "core/store/manifest_json.h"
#include "core/store/writer.h"
#include "tests/store/memory_source.h"

namespace tierd {

inline Manifest a_plan(Layout layout = Layout::row, Bundling bundling = Bundling::row_column,
                       uint32_t layer_group = 1) {
  const MemorySource source(small_opt(), Encoding::f16);
  const WriteOptions options = {.neuron_bytes = 4096,
                                .layout = layout,
                                .bundling = bundling,
                                .layer_group = layer_group,
                                .quiet = true};
  auto plan = plan_store(source, options);
  EXPECT_TRUE(plan.ok());
  return std::move(plan).value();
}

// Returns a plan of bundles in three encodings.
inline Manifest a_plan_with_editions() {
  auto plan =
      plan_store(MemorySource(small_llama(), Encoding::f16),
                 {.layout = Layout::neuron, .editions = {Encoding::q8_0, Encoding::q4_0}, .quiet = true});
  EXPECT_TRUE(plan.ok()) << plan.error().line();
  for (StoredSite& edition : plan->editions) edition.encoding_error = 0.0625F;
  return std::move(plan).value();
}

// Returns the text of `content` with a matching checksum in the first line.
inline std::string with_checksum(nlohmann::json content) {
  content.erase("xxh3");
  const std::string rest = content.dump().substr(1) + "\n";
  return "{\"xxh3\": \"" + checksum_text(checksum(rest)) + "\",\n" + rest;
}

// Parses a manifest with `extents` checksums of 0.
inline Result<Manifest> parse(const std::string& text, size_t extents) {
  return parse_manifest(text, "the file", std::string(extents * 8, '\0'), "the checksums");
}

struct Hostile {
  const char* what;
  std::function<void(nlohmann::json&)> edit;
  const char* message;
  Code code = Code::corrupt;
};

inline void expect_refused(const Manifest& plan, const std::vector<Hostile>& all) {
  nlohmann::json good = nlohmann::json::parse(manifest_text(plan));
  // Each extent becomes a run of its own, so that each can be damaged separately.
  good["extents"] = nlohmann::json::array();
  for (const Extent& extent : plan.extents)
    good["extents"].push_back({extent.offset, extent.bytes, extent.bytes, 1});
  ASSERT_TRUE(parse(with_checksum(good), plan.extents.size()).ok());
  for (const Hostile& hostile : all) {
    nlohmann::json content = good;
    hostile.edit(content);
    size_t extents = 0;
    for (const nlohmann::json& run : content["extents"]) {
      const bool counted = run.is_array() && run.size() == 4 && run[3].is_number_integer();
      extents += counted ? std::clamp<int64_t>(run[3].get<int64_t>(), 1, 2) : 1;
    }
    if (content["checksums"] == good["checksums"]) {
      content["checksums"] = checksum_text(checksum(std::string(extents * 8, '\0')));
    }
    const auto parsed = parse(with_checksum(content), extents);
    EXPECT_EQ(parsed.code(), hostile.code) << hostile.what;
    if (parsed.ok()) continue;
    EXPECT_THAT(parsed.error().line(),
                testing::AllOf(testing::HasSubstr("the file: "), testing::HasSubstr(hostile.message)))
        << hostile.what;
    EXPECT_EQ(parsed.error().line().find('\n'), std::string::npos);
  }
}

}  // namespace tierd
