// Lists that take a dozen bytes of a trace and name many neurons: memory must grow with the size of the trace
// only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "core/watch/trace/recorder.h"
#include "core/watch/trace/what_if.h"
#include "tests/base/temp_folder.h"
#include "tests/peak_memory.h"
#include "tests/sanitized.h"
#include "tests/watch/trace/trace_world.h"
#include "tools/lab/activity/activity.h"
#include "tools/lab/activity/truth.h"

namespace tierd {
namespace {

using testing::HasSubstr;

constexpr uint32_t kNeurons = 100'000;
constexpr uint32_t kSteps = 300;  // 120 MB as numbers, for each listing

class LongRuns : public testing::Test {
 protected:
  static TraceHeader header() {
    TraceHeader header = small_header();
    header.sites[1].n = kNeurons;
    header.sites.editions[0].n = kNeurons;
    header.sites.editions[0].bytes.assign(kNeurons, 4000);
    header.max_units = kNeurons;
    return header;
  }
  // Writes steps that each list kNeurons - 1 neurons of a site from `first` on, as active and measured.
  std::string write(SiteId listed = 1, uint32_t first = 1) const {
    std::vector<uint32_t> neurons(kNeurons - 1);
    std::iota(neurons.begin(), neurons.end(), first);
    const ActiveSet set = ActiveSet::of(neurons);
    const std::string path = folder_.path() + "/" + std::to_string(listed) + std::to_string(first);
    const WallClock clock;
    auto recorder = Recorder::create(path, header(), clock);
    EXPECT_TRUE(recorder.ok());
    const std::vector<uint64_t> sequences = {0};
    (*recorder)->sequence_begins(0, "");
    for (uint32_t step = 0; step < kSteps; ++step) {
      Pass pass;
      pass.step = step;
      pass.rows = 1;
      pass.sequences = sequences;
      (*recorder)->pass_begins(1, pass);
      (*recorder)->activated(listed, set);
      (*recorder)->measured(listed, {.active = set});
      (*recorder)->step_ends(step);
    }
    EXPECT_TRUE((*recorder)->finish().ok());
    return path;
  }
  const TempFolder folder_;
};

TEST_F(LongRuns, AreKeptInAsManyBytesAsTheFileHas) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  constexpr uint64_t kMost = 40 << 20;  // the lists of a block, and one list of each kind
  const std::string path = write();
  const auto growth = [&](auto view) {
    return peak_growth_bytes([&] {
      auto trace = TraceReader::open(path);
      if (!trace.ok() || !view(*trace).ok()) _exit(1);
    });
  };
  EXPECT_LT(growth([](TraceReader& trace) { return read_asked(trace); }), kMost);
  EXPECT_LT(growth([](TraceReader& trace) { return read_activity(trace, false); }), kMost);
  EXPECT_LT(growth([&](TraceReader& trace) { return write_truth(trace, folder_.path() + "/truth"); }), kMost);
  EXPECT_EQ(std::filesystem::file_size(folder_.path() + "/truth") / (kSteps * (kNeurons - 1)), sizeof(float));
}

TEST_F(LongRuns, NeuronsThatASiteHasNotAreNamed) {
  for (const auto& [path, expected] :
       {std::pair(write(2), "event 2: site 2, neuron 5 at place 4: expected ascending numbers below 5"),
        std::pair(
            write(1, 2),
            "event 2: site 1, neuron 100000 at place 99998: expected ascending numbers below 100000")}) {
    auto trace = TraceReader::open(path);
    ASSERT_TRUE(trace.ok()) << trace.error().line();
    EXPECT_THAT(read_asked(*trace).error().line(), HasSubstr(expected));
    trace->rewind();
    EXPECT_THAT(read_activity(*trace, false).error().line(), HasSubstr(expected));
    trace->rewind();
    EXPECT_THAT(write_truth(*trace, folder_.path() + "/truth").error().line(), HasSubstr(expected));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/truth"));
  }
}

}  // namespace
}  // namespace tierd
