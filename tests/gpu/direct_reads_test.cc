// Reads from the store directly into a device's memory: the rules of reading agents on each path, and the
// messages where cuFile is missing or faulty.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/kernel/post/clocks.h"
#include "tests/flash/flash_world.h"
#include "tests/tier/conform/agent_cases.h"

namespace tierd {
namespace {

using testing::HasSubstr;

std::string fake(const std::string& kind) {
  return std::string(TIERD_FAKE_CUFILE_DIR) + "/" + kind + ".so";
}

AgentChoice choice_of(const std::vector<Setting>& settings) {
  const std::string file = TIERD_DOUBLE_DIR "/agent-direct.so";
  const auto entry = load_agent(file, "direct");
  EXPECT_TRUE(entry.ok()) << entry.error().line();
  auto choice = choose_settings(**entry, file, "tiers.direct", settings);
  EXPECT_TRUE(choice.ok()) << choice.error().line();
  return *choice;
}
std::vector<Setting> path(const std::string& name, const std::string& library = "", int64_t late = 0) {
  return {{"path", name, "test"}, {"late", late, "test"}, {"cufile", library, "test"}};
}
// Packed extents of any size at any place: for these reads, blocks that are not aligned are no mistake.
std::vector<AgentRuleCase> cases_of(const std::vector<Setting>& settings) {
  std::vector<AgentCase> packed = agent_cases(choice_of(settings));
  std::erase_if(packed, [](const AgentCase& tried) { return tried.name != "direct_reads_packed"; });
  EXPECT_EQ(packed.size(), 1u);
  return rule_cases(packed);
}

INSTANTIATE_TEST_SUITE_P(DirectOnTheHost, AgentConformance, testing::ValuesIn(cases_of(path("host"))),
                         case_name);
INSTANTIATE_TEST_SUITE_P(DirectOverALink, AgentConformance, testing::ValuesIn(cases_of(path("link"))),
                         case_name);
INSTANTIATE_TEST_SUITE_P(DirectStaged, AgentConformance, testing::ValuesIn(cases_of(path("cuda"))),
                         case_name);
INSTANTIATE_TEST_SUITE_P(DirectStagedLate, AgentConformance, testing::ValuesIn(cases_of(path("cuda", "", 5))),
                         case_name);
INSTANTIATE_TEST_SUITE_P(DirectByCuFile, AgentConformance,
                         testing::ValuesIn(cases_of(path("cufile", fake("sound")))), case_name);
INSTANTIATE_TEST_SUITE_P(DirectByShortCuFile, AgentConformance,
                         testing::ValuesIn(cases_of(path("cufile", fake("short")))), case_name);

// An agent over a file of extents.
class DirectReadsTest : public testing::Test {
 protected:
  static constexpr MemoryId kMemory = 1;  // the agent's

  DirectReadsTest() : world_(7, 16, FlashWorld::Packing::packed) {}
  void make(const std::vector<Setting>& settings) {
    made_ = {};
    pools_ = {};
    pools_.add_memory(kMemory, world_.memory());
    AgentContext context{
        .number = FlashWorld::kAgent, .table = "tiers.direct", .pools = pools_, .clock = clock_};
    ReadTask& task = context.read.emplace();
    task.path = world_.path();
    task.extents = world_.table();
    task.bounce_bytes = 64 * kBlock;
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto made = make_agent(choice_of(settings), context);
    said_ = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    ASSERT_TRUE(made.ok()) << made.error().line();
    made_ = std::move(*made);
  }
  // Reads all extents.
  Done read() {
    std::vector<uint32_t> all(world_.table().size());
    for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    Message message = world_.read(all);
    message.memory = kMemory;
    EXPECT_EQ(made_.agent->submit(message, world_.payload(message)), Submit::ok);
    Done done;
    while (made_.agent->poll({&done, 1}) == 0) made_.agent->drive();
    if (done.status == DoneStatus::ok) world_.expect_landed(message, static_cast<uint32_t>(all.size()));
    world_.release(message);
    return done;
  }
  ReadCounts counts() const { return made_.counts().read; }

  FlashWorld world_;
  WallClock clock_;
  PoolTable pools_;
  std::string said_;
  MadeAgent made_;
};

TEST_F(DirectReadsTest, TheHostStandsForTheGpuAndVerifiesAll) {
  make(path("host"));
  EXPECT_EQ(made_.reading.way, "staged through the host's memory");
  EXPECT_EQ(made_.reading.way_why, "this machine stands for the GPU");
  EXPECT_EQ(said_, "");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(read().status, DoneStatus::ok);
  EXPECT_EQ(counts().verified_bytes, counts().bytes);
}

// Extents that the disk transfers by itself are verified at their first load only.
TEST_F(DirectReadsTest, CuFileIsCheckedOnFirstLoad) {
  make(path("cufile", fake("sound")));
  EXPECT_EQ(made_.reading.way, "cuFile");
  EXPECT_EQ(made_.reading.way_why, "");
  EXPECT_EQ(said_, "");
  EXPECT_EQ(read().status, DoneStatus::ok);
  const uint64_t once = counts().bytes;
  EXPECT_EQ(counts().verified_bytes, once);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(read().status, DoneStatus::ok);
  EXPECT_EQ(counts().bytes, 3 * once);
  EXPECT_EQ(counts().verified_bytes, once);
}

TEST_F(DirectReadsTest, WhereThereIsNoCuFileALineSaysWhy) {
  const struct {
    std::string library;
    std::string why;
  } cases[] = {
      {"/nowhere/libcufile.so.0", "cannot be loaded: "},
      {fake("no_driver"), "its driver cannot be opened: error 5001"},
      {fake("compatible"), "supports its compatibility mode only, in which the host reads and copies"},
      {TIERD_DOUBLE_DIR "/agent-direct.so", "lacks a function of cuFile: "}};
  for (const auto& [library, why] : cases) {
    make(path("cufile", library));
    EXPECT_EQ(made_.reading.way, "staged through pinned memory");
    EXPECT_THAT(made_.reading.way_why, testing::StartsWith(why));
    EXPECT_THAT(said_, HasSubstr(library + ": " + why));
    EXPECT_THAT(said_, HasSubstr("what tiers.direct reads directly is staged through pinned memory"));
    EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 1);
    EXPECT_EQ(read().status, DoneStatus::ok);
    EXPECT_EQ(counts().verified_bytes, counts().bytes);
  }
}

// As with the flash agent, extents read together are then read one by one, and only the unit at the bad place
// fails.
TEST_F(DirectReadsTest, AReadThatFailsFailsItsMessage) {
  constexpr uint64_t kBadPlace = 50'000;  // see CMakeLists.txt
  const std::vector<ExtentRef>& table = world_.table();
  const auto bad = std::find_if(table.begin(), table.end(), [](const ExtentRef& extent) {
    return extent.offset <= kBadPlace && kBadPlace < extent.offset + extent.bytes;
  });
  ASSERT_NE(bad, table.end());
  make(path("cufile", fake("bad_place")));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) {
    const Done done = read();
    EXPECT_EQ(done.status, DoneStatus::io_error);
    EXPECT_EQ(done.error, EIO);
    EXPECT_EQ(done.first_bad, bad - table.begin());
    EXPECT_EQ(done.bad_extent, done.first_bad);
    EXPECT_EQ(done.n_done, table.size() - 1);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("cuFile failed to read: error 5030"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
}

TEST_F(DirectReadsTest, WhatCameWrongIsCorruptUntilItComesRight) {
  make(path("cufile", fake("spoils")));
  EXPECT_EQ(read().status, DoneStatus::corrupt);
  EXPECT_EQ(read().status, DoneStatus::ok);
  EXPECT_EQ(read().status, DoneStatus::ok);
  uint64_t all = 0;
  for (const ExtentRef& extent : world_.table()) all += extent.bytes;
  EXPECT_EQ(counts().verified_bytes, all);
}

}  // namespace
}  // namespace tierd
