#include "core/system/memory_pressure.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/system/control_group_files.h"

namespace tierd {
namespace {

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(MemoryPressure, NearTheLimitOfTheGroup) {
  const std::string folder = fresh_folder("limit");
  const ControlGroup group{folder, true};
  EXPECT_EQ(watch_limit(group, 0.9).error().line(),
            folder + ": this memory cgroup has no limit, or its files cannot be read");
  write(folder + "/memory.max", "1000\n");
  write(folder + "/memory.current", "900\n");
  const auto source = watch_limit(group, 0.9);
  ASSERT_TRUE(source.ok());
  EXPECT_FALSE((*source)->pressed());
  write(folder + "/memory.current", "901\n");
  EXPECT_TRUE((*source)->pressed());
  write(folder + "/memory.stat", "inactive_file 100\n");
  EXPECT_FALSE((*source)->pressed());
  std::filesystem::remove(folder + "/memory.max");
  EXPECT_FALSE((*source)->pressed());
}

// A plain file accepts the trigger and never reports pressure.
TEST(MemoryPressure, TheTriggerGoesToTheFirstFileThatTakesIt) {
  const std::string folder = fresh_folder("stalls");
  write(folder + "/second", "");
  write(folder + "/third", "");
  const auto source =
      watch_stalls({folder + "/first", folder + "/second", folder + "/third"}, {150'000, 1'000'000});
  ASSERT_TRUE(source.ok()) << source.error().line();
  EXPECT_EQ(text_of(folder + "/second"), std::string("some 150000 1000000\0", 20));
  EXPECT_EQ(text_of(folder + "/third"), "");
  EXPECT_FALSE((*source)->pressed());
}

TEST(MemoryPressure, ASystemWithoutSuchFilesSaysSo) {
  const std::string folder = fresh_folder("none");
  EXPECT_EQ(watch_stalls({folder + "/a", folder + "/b"}, {150'000, 1'000'000}).error().line(),
            folder + "/b: does not accept the trigger 'some 150000 1000000': No such file or directory");
  EXPECT_EQ(watch_stalls({}, {1, 1}).error().line(), "memory pressure: found no file of memory pressure");
  EXPECT_FALSE(stall_files().empty());
}

}  // namespace
}  // namespace tierd
