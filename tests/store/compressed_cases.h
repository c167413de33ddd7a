// Models that compress well, and the bytes that their stores have on disk.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/file.h"
#include "core/store/store.h"
#include "tests/store/memory_source.h"
#include "tools/lab/synth/zeroed_source.h"

namespace tierd {

// Returns a model `percent` of whose weights are zero.
inline ZeroedSource pruned(ModelConfig config, Encoding encoding, uint32_t percent = 50) {
  return {std::make_unique<MemorySource>(std::move(config), encoding), percent};
}

inline std::vector<std::byte> read_extent(const Store& store, uint32_t extent) {
  const auto file = File::open(store.data_path());
  std::vector<std::byte> bytes(store.manifest().extents[extent].bytes);
  EXPECT_TRUE(file.ok() && file->read_exact(store.manifest().extents[extent].offset, bytes).ok());
  return bytes;
}

}  // namespace tierd
