// Runs tier-profile --frequencies and tier-partition as a user does.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/program.h"
#include "tests/formats/safetensors_builder.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class PartitionCli : public ProgramTest {
 protected:
  Ended partition(const std::string& frequencies, std::vector<std::string> more) const {
    more.insert(more.begin(), {frequencies, "-o", output(), "--dimms", "4"});
    return run_program(TIERD_BIN_PARTITION, std::move(more));
  }
  std::string output() const { return folder().path() + "/partition.safetensors"; }
  // Returns two sites of 40 neurons of 1 KiB.
  static SafetensorsBuilder sound() {
    SafetensorsBuilder file;
    for (const char* site : {"layers.0.ffn", "layers.1.ffn"}) {
      file.add_f32(std::string(site) + ".frequency", {40}, 0.25F);
      file.add_f32(std::string(site) + ".bytes", {1}, 1024);
    }
    return file;
  }
};

TEST_F(PartitionCli, AProfileBecomesAPartition) {
  const std::string frequencies = folder().path() + "/frequencies.safetensors";
  const Ended profiled =
      run_program(TIERD_BIN_PROFILE, {"-m", kDemo, TIERD_SOURCE_DIR "/LICENSE", "-o", frequencies, "--tokens",
                                      "200", "--frequencies", "-q", "-t", "1"});
  ASSERT_EQ(profiled.status, 0) << profiled.err;
  const Ended ended = partition(frequencies, {"--gpu-bytes", "300kB", "--json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, IsEmpty());
  const json report = json::parse(ended.out, nullptr, false);
  EXPECT_EQ(report["sites"], 6);
  EXPECT_EQ(report["neurons"], 6 * 1024);
  EXPECT_GT(report["gpu_bytes"], 0);
  EXPECT_LE(report["gpu_bytes"], 300'000);
  EXPECT_LE(report["objective_ms"], report["greedy_ms"]);
  EXPECT_LT(report["objective_ms"], report["random_ms"]);
  EXPECT_LT(report["gap"], 0.01);
  EXPECT_TRUE(std::filesystem::exists(output()));
  EXPECT_FALSE(std::filesystem::exists(output() + ".partial"));
}

TEST_F(PartitionCli, TellsWhatItFoundOnOneScreen) {
  const std::string file = folder().write("f", sound().bytes());
  const Ended ended =
      partition(file, {"--gpu-bytes", "10 KiB", "--gpu-bandwidth", "936 GB/s", "--sync", "5"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("\nilp "), HasSubstr("\ngreedy "), HasSubstr("\nrandom "),
                               HasSubstr("\nbound "), HasSubstr("gap"), HasSubstr("10.2 kB of 10.2 kB")));
  EXPECT_LE(std::ranges::count(ended.out, '\n'), 24);
  const Ended greedy = partition(file, {"--gpu-bytes", "0", "--method", "greedy"});
  ASSERT_EQ(greedy.status, 0) << greedy.err;
  EXPECT_THAT(greedy.out, testing::Not(HasSubstr("\nilp ")));
}

TEST_F(PartitionCli, BadInputIsOneLine) {
  const auto refused = [&](const std::string& file, std::vector<std::string> more, const std::string& what) {
    const Ended ended = partition(file, std::move(more));
    EXPECT_EQ(ended.status, 2) << ended.err;
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_THAT(ended.err, AllOf(StartsWith("tier-partition: "), HasSubstr(what), EndsWith("\n")));
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
    EXPECT_FALSE(std::filesystem::exists(output()));
  };
  const std::string good = folder().write("good", sound().bytes());
  refused(folder().path() + "/none", {"--gpu-bytes", "1MB"}, "/none");
  refused(good, {}, "--gpu-bytes");
  refused(good, {"--gpu-bytes", "much"}, "--gpu-bytes");
  refused(good, {"--gpu-bytes", "1MB", "--gpu-bandwidth", "0"}, "--gpu-bandwidth");
  refused(good, {"--gpu-bytes", "1MB", "--sync", "-1"}, "--sync");
  refused(good, {"--gpu-bytes", "1MB", "--method", "best"}, "--method");
  refused(good, {"--gpu-bytes", "1MB", "--dimm-bytes", "10kB"}, "--dimm-bytes");
  refused(folder().write("text", "frequencies"), {"--gpu-bytes", "1MB"}, "/text");
  const auto with = [&](float frequency, const std::string& what) {
    SafetensorsBuilder file = sound();
    file.add_f32("layers.2.ffn.frequency", {40}, frequency);
    file.add_f32("layers.2.ffn.bytes", {1}, 1024);
    refused(folder().write("bad", file.bytes()), {"--gpu-bytes", "1MB"}, what);
  };
  with(1.5F, "layers.2.ffn: neuron 0 has a frequency of 1.5");
  with(-0.5F, "layers.2.ffn: neuron 0 has a frequency of -0.5");
  with(NAN, "layers.2.ffn: neuron 0 has a frequency of nan");
  SafetensorsBuilder missing = sound();
  missing.add_f32("layers.2.ffn.frequency", {40}, 0);
  refused(folder().write("missing", missing.bytes()), {"--gpu-bytes", "1MB"}, "no 'layers.2.ffn.bytes'");
}

}  // namespace
}  // namespace tierd
