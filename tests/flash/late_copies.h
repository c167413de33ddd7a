// A memory that is apart, as the flash agent sees it: copies are made at drawn times in any order, and some
// fail.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/base/random.h"
#include "tiers/flash/apart_memory.h"

namespace tierd {

class LateCopies final : public ApartMemory {
 public:
  // `fail`: the percentage of reads whose copies all fail.
  LateCopies(std::span<std::byte> memory, uint64_t seed, uint32_t fail)
      : memory_(memory), random_(seed), fail_(fail) {}
  ~LateCopies() override { EXPECT_TRUE(released_); }

  uint64_t bytes() const override { return memory_.size(); }
  void begin(uint64_t token, std::span<const Copy> copies) override {
    EXPECT_FALSE(copies.empty());
    under_way_.push_back({token, {copies.begin(), copies.end()}});
    most_ = std::max(most_, under_way_.size());
  }
  size_t poll(std::span<Copied> copied) override {
    size_t n = 0;
    while (n != copied.size() && !under_way_.empty() && random_.below(3) != 0) {
      const size_t which = random_.below(static_cast<uint32_t>(under_way_.size()));
      const UnderWay read = under_way_[which];
      under_way_.erase(under_way_.begin() + static_cast<ptrdiff_t>(which));
      Copied& end = copied[n++] = {.token = read.token};
      if (random_.below(100) < fail_) {
        end.status = DoneStatus::internal;
        end.error = 17;
        ++failed_;
        continue;
      }
      for (const Copy& copy : read.copies) std::memcpy(memory_.data() + copy.to, copy.from, copy.bytes);
    }
    return n;
  }
  void release() override { released_ = true; }

  size_t most() const { return most_; }  // reads copied at once
  uint32_t failed() const { return failed_; }

 private:
  struct UnderWay {
    uint64_t token = 0;
    std::vector<Copy> copies;
  };
  const std::span<std::byte> memory_;
  Random random_;
  const uint32_t fail_;
  std::vector<UnderWay> under_way_;
  size_t most_ = 0;
  uint32_t failed_ = 0;
  bool released_ = false;
};

}  // namespace tierd
