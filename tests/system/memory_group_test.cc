#include "core/system/memory_group.h"

#include <gtest/gtest.h>

#include "tests/system/control_group_files.h"

namespace tierd {
namespace {

TEST(MemoryGroup, Version1BeforeVersion2) {
  const auto group = find_control_group(
      "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
      "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
      "cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n"
      "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
      "8:cpu:/a\n4:memory:/jobs/tierd-bench.7\n0::/b\n", "memory");
  ASSERT_TRUE(group);
  EXPECT_EQ(group->directory, "/sys/fs/cgroup/memory/jobs/tierd-bench.7");
  EXPECT_FALSE(group->v2);
}

TEST(MemoryGroup, Version2) {
  const auto group = find_control_group("cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n",
                                        "0::/user.slice/x.scope\n", "memory");
  ASSERT_TRUE(group);
  EXPECT_EQ(group->directory, "/sys/fs/cgroup/user.slice/x.scope");
  EXPECT_TRUE(group->v2);
}

TEST(MemoryGroup, NoneWithoutAController) {
  EXPECT_FALSE(find_control_group("proc /proc proc rw 0 0\n", "0::/\n", "memory"));
  EXPECT_FALSE(find_control_group("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", "8:cpu:/a\n", "memory"));
  EXPECT_FALSE(find_control_group("", "", "memory"));
}

TEST(MemoryGroup, ReadsLimitAndPeak) {
  const std::string v1 = fresh_folder("v1");
  write(v1 + "/memory.max_usage_in_bytes", "1000\n");
  write(v1 + "/memory.limit_in_bytes", "2000\n");
  auto use = read_use({v1, false});
  ASSERT_TRUE(use);
  EXPECT_EQ(use->peak_bytes, 1000u);
  EXPECT_EQ(use->limit_bytes, 2000u);

  const std::string v2 = fresh_folder("v2");
  write(v2 + "/memory.peak", "3000\n");
  write(v2 + "/memory.max", "max\n");
  use = read_use({v2, true});
  ASSERT_TRUE(use);
  EXPECT_EQ(use->peak_bytes, 3000u);
  EXPECT_FALSE(use->limit_bytes);
}

TEST(MemoryGroup, Version1SaysNoLimitByAHugeNumber) {
  const std::string v1 = fresh_folder("unlimited");
  write(v1 + "/memory.max_usage_in_bytes", "1000\n");
  write(v1 + "/memory.limit_in_bytes", "9223372036854771712\n");
  const auto use = read_use({v1, false});
  ASSERT_TRUE(use);
  EXPECT_FALSE(use->limit_bytes);
}

TEST(MemoryGroup, TheShareInUseLeavesOutIdlePagesOfFiles) {
  const std::string v1 = fresh_folder("share-v1");
  write(v1 + "/memory.limit_in_bytes", "2000\n");
  write(v1 + "/memory.usage_in_bytes", "1500\n");
  EXPECT_EQ(used_share({v1, false}), 0.75);
  write(v1 + "/memory.stat", "inactive_file 9\ntotal_inactive_file 500\ntotal_active_file 100\n");
  EXPECT_EQ(used_share({v1, false}), 0.5);
  write(v1 + "/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(used_share({v1, false}));

  const std::string v2 = fresh_folder("share-v2");
  write(v2 + "/memory.max", "1000\n");
  EXPECT_FALSE(used_share({v2, true}));
  write(v2 + "/memory.current", "900\n");
  write(v2 + "/memory.stat", "anon 100\ninactive_file 2000\n");
  EXPECT_EQ(used_share({v2, true}), 0.0);
}

TEST(MemoryGroup, NothingWhereTheFilesAreMissing) {
  EXPECT_FALSE(read_use({fresh_folder("empty"), true}));
}

}  // namespace
}  // namespace tierd
