#include "tools/lab/activity/activity_source.h"

#include <gtest/gtest.h>

#include <numeric>

#include "core/base/row_mask.h"
#include "tools/lab/activity/sticky_activity.h"

namespace tierd {
namespace {

TEST(ActiveBits, AreListedAndCounted) {
  const std::vector<uint64_t> bits = {0x8000000000000005, 0, 1};
  EXPECT_EQ(list_active(bits), (std::vector<uint32_t>{0, 2, 63, 128}));
  EXPECT_EQ(count_active(bits), 4u);
  EXPECT_TRUE(list_active({}).empty());
}

// Every neuron that a row uses is listed once, and its mask has exactly the rows that use it.
TEST(ActiveRows, HaveWhoUsesWhat) {
  ActivityProfile profile;
  profile.rates = {0.2, 0.8};
  constexpr uint32_t kSequences = 70;  // more than one mask word
  const auto source = StickyActivity::create(profile, {.neurons = {130}, .sequences = kSequences});
  ASSERT_TRUE(source.ok());
  StickyActivity activity = *source;
  for (uint32_t s = 0; s < kSequences; ++s) activity.next_token(s);
  std::vector<uint32_t> sequences(kSequences);
  std::iota(sequences.begin(), sequences.end(), 0u);
  const ActiveRows rows = active_rows(activity, 0, sequences);
  const uint32_t words = mask_words(kSequences);
  ASSERT_EQ(rows.row_masks.size(), rows.neurons.size() * words);
  uint64_t uses = 0;
  for (size_t i = 0; i < rows.neurons.size(); ++i) {
    EXPECT_TRUE(i == 0 || rows.neurons[i - 1] < rows.neurons[i]);
    uint32_t users = 0;
    for (uint32_t r = 0; r < kSequences; ++r) {
      const uint32_t neuron = rows.neurons[i];
      const bool active = (activity.active(r, 0)[neuron / 64] >> neuron % 64 & 1) != 0;
      EXPECT_EQ(mask_has(&rows.row_masks[i * words], r), active);
      users += active ? 1 : 0;
    }
    EXPECT_GT(users, 0u);
    uses += users;
  }
  uint64_t all = 0;
  for (uint32_t s = 0; s < kSequences; ++s) all += count_active(activity.active(s, 0));
  EXPECT_EQ(uses, all);
  const std::vector<uint32_t> one = {3};
  EXPECT_EQ(active_rows(activity, 0, one).neurons, list_active(activity.active(3, 0)));
  EXPECT_TRUE(active_rows(activity, 0, one).row_masks.empty());
}

}  // namespace
}  // namespace tierd
