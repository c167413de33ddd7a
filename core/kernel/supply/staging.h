// The staging of a memory: equal blocks for neurons that the cache does not keep. A block is leased for
// transfers, used by compute or by a transfer to another memory, and given back.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/check.h"

namespace tierd {

inline constexpr uint32_t kNoBlock = UINT32_MAX;

class Staging {
 public:
  Staging(uint32_t blocks, uint32_t block_bytes) : block_bytes_(block_bytes), holders_(blocks, 0) {
    for (uint32_t b = blocks; b-- > 0;) free_.push_back(b);
  }
  uint32_t blocks() const { return static_cast<uint32_t>(holders_.size()); }  // leased or free
  uint32_t block_bytes() const { return block_bytes_; }
  uint32_t free_blocks() const { return static_cast<uint32_t>(free_.size()); }
  uint32_t lease() {
    TIERD_CHECK(!free_.empty());
    const uint32_t block = free_.back();
    free_.pop_back();
    holders_[block] = 1;
    return block;
  }
  // Another transfer fills a part of a leased block, which is free again once each transfer has given it
  // back.
  void share(uint32_t block) { ++holders_[block]; }
  void give_back(uint32_t block) {
    if (--holders_[block] == 0) free_.push_back(block);
  }

 private:
  uint32_t block_bytes_;
  std::vector<uint32_t> free_;
  std::vector<uint8_t> holders_;  // [blocks]
};

}  // namespace tierd
