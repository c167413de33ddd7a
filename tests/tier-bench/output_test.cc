// From blocks with known figures to each form of the report.
#include "tools/tier-bench/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/tier-bench/report.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr uint32_t kLayers = 2;

// Ten tokens in `seconds`: 60 % compute, 30 % stall; 2 GB of 4 GB from a disk of 4 GB/s.
Round round_of(double seconds) {
  Round round;
  Block& block = round.ours;
  block.tokens = 10;
  block.seconds = seconds;
  block.times.steps = block.times.tokens = 10;
  block.times.wall_ns = static_cast<uint64_t>(seconds * 1e9);
  block.times.compute_ns = static_cast<uint64_t>(seconds * 0.6e9);
  block.times.idle_ns = static_cast<uint64_t>(seconds * 0.3e9);
  block.times.read_bytes = 20'000'000'000;
  block.times.resident_bytes = 20'000'000'000;
  block.times.messages = 50;
  block.wake_ups = 40;
  block.flash_ns = 11'000'000'000;
  block.flash_steps = 11;
  block.traffic = {2e9, 4e9};
  block.bandwidths = {4e9, 40e9};
  round.disk = {4e9};
  return round;
}

Measurement result() {
  Measurement result;
  result.test = {Workload::Kind::decode, 10};
  for (const double seconds : {10.0, 8.0, 12.5}) result.rounds.push_back(round_of(seconds));
  result.repeated = 1;
  return result;
}

json run() {
  return {{"date", "2026-03-01 12:30:00 UTC"},
          {"commit", "abc"},
          {"host", "box"},
          {"cpu", "A \"CPU\""},
          {"cores", 2},
          {"memory_bytes", 8e9},
          {"model", "llama-2-7b"},
          {"shape",
           {{"architecture", "llama"},
            {"layers", kLayers},
            {"d_model", 64},
            {"d_ff", 128},
            {"encoding", "q4_0"}}},
          {"tensor_bytes", 4e9},
          {"config", "configs/hybrid.toml"},
          {"set", {"a=1"}},
          {"predictor", "dense"},
          {"quantizer", "plain"},
          {"cache", "pinned"},
          {"balancer", "single"},
          {"activations", "int8"},
          {"kv", "f16"},
          {"backend", "host"},
          {"clock", "wall"},
          {"kernels", "scalar"},
          {"threads", 2},
          {"context", 128},
          {"prefill_chunk", 128},
          {"device", "io_uring"},
          {"cache_state", "direct I/O"},
          {"seed", 0},
          {"block_seconds", 30},
          {"warmup_seconds", 10},
          {"budget", {{"capacity_bytes", 2e9}, {"peak_bytes", 1.9e9}, {"raised_to_least", false}}},
          {"memory", memory_json({1'000'000, MemoryGroupUse{2'000'000, 1'500'000}})}};
}

TEST(Report, FiguresOfADecodeTest) {
  const json test = test_json(result(), kLayers);
  EXPECT_DOUBLE_EQ(test["tokens_per_second"]["median"], 1.0);
  EXPECT_DOUBLE_EQ(test["tokens_per_second"]["least"], 0.8);
  EXPECT_DOUBLE_EQ(test["tokens_per_second"]["most"], 1.25);
  EXPECT_EQ(test["blocks"], 3);
  EXPECT_EQ(test["repeated"], 1);
  EXPECT_EQ(test["samples"].size(), 3u);
  const json& limit = test["limit"];
  EXPECT_DOUBLE_EQ(limit["tokens_per_second"], 2.0);  // 2 GB at 4 GB/s
  EXPECT_DOUBLE_EQ(limit["ratio"]["median"], 0.5);
  EXPECT_DOUBLE_EQ(limit["memory_ms"], 100);
  EXPECT_EQ(limit["terms_within_20_percent"], false);
  EXPECT_DOUBLE_EQ(limit["share_of_memory_bandwidth"], 0.1);
  const json& token = test["per_token"];
  EXPECT_NEAR(token["step_ms"], 30.5e3 / 30, 1e-6);
  EXPECT_NEAR(token["kernel_overhead_percent"], 10, 1e-6);
  EXPECT_DOUBLE_EQ(token["flash_bytes"], 2e9);
  EXPECT_DOUBLE_EQ(token["messages"], 5);
  EXPECT_DOUBLE_EQ(token["handovers_per_layer"], 2);
  EXPECT_NEAR(token["io_ms"], 1000, 1e-6);  // the flash figures are of eleven steps
}

TEST(Report, APromptHasNoLimit) {
  Measurement prefill = result();
  prefill.test = {Workload::Kind::prefill, 10};
  const json test = test_json(prefill, kLayers);
  EXPECT_TRUE(test["limit"].is_null());
  const std::string text =
      to_text({{"run", run()}, {"tests", json::array({test})}, {"peer", nullptr}}, Format::md);
  EXPECT_THAT(text, HasSubstr("| pp10 | 1.00 |"));
}

TEST(Report, PeerBesideOurs) {
  Measurement both = result();
  for (Round& round : both.rounds) round.peer = PeerRun{0.5, 20};
  Arguments arguments;
  arguments.peer = PeerArguments{"peer --rate", {}, false};
  const json peer = peer_json(arguments, both, 10'000'000);
  EXPECT_DOUBLE_EQ(peer["ours_tokens_per_second"], 1.0);
  EXPECT_DOUBLE_EQ(peer["tokens_per_second"]["median"], 0.5);
  EXPECT_DOUBLE_EQ(peer["ratio"], 2.0);
  const json report = {{"run", run()}, {"tests", json::array({test_json(both, kLayers)})}, {"peer", peer}};
  EXPECT_THAT(to_text(report, Format::md), HasSubstr("| tg10 | 1.00 | 0.500 | 0.500 – 0.500 | 2.00 | 3 |"));
}

TEST(Output, TablesForAPerson) {
  const json report = {
      {"run", run()}, {"tests", json::array({test_json(result(), kLayers)})}, {"peer", nullptr}};
  const std::string text = to_text(report, Format::md);
  EXPECT_THAT(text,
              HasSubstr("| tg10 | 1.00 | 0.800 – 1.25 | 2.00 | 0.500 | 4.00 GB/s | 40.0 GB/s | 10 % | 3 |"));
  EXPECT_THAT(text, HasSubstr("- tg10: 1 rounds were repeated"));
  EXPECT_THAT(text, HasSubstr("configs/hybrid.toml --set a=1"));
  EXPECT_THAT(text, HasSubstr("memory cgroup at most 1.50 MB, limit 2.00 MB"));
  EXPECT_THAT(text, HasSubstr("commit abc"));
}

TEST(Output, JsonIsTheReport) {
  const json report = {
      {"run", run()}, {"tests", json::array({test_json(result(), kLayers)})}, {"peer", nullptr}};
  EXPECT_EQ(json::parse(to_text(report, Format::json)), report);
}

// Splits at commas outside quotes.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> parts(1);
  bool inside = false;
  for (const char c : line) {
    if (c == '"') inside = !inside;
    if (c == ',' && !inside) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

TEST(Output, CsvHasOneLineATestWithTheSameColumns) {
  Measurement prefill = result();
  prefill.test = {Workload::Kind::prefill, 10};
  const json report = {{"run", run()},
                       {"tests", json::array({test_json(prefill, kLayers), test_json(result(), kLayers)})},
                       {"peer", nullptr}};
  std::istringstream text(to_text(report, Format::csv));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 3u);
  const auto names = cells(lines[0]);
  const auto first = cells(lines[1]);
  const auto second = cells(lines[2]);
  EXPECT_EQ(first.size(), names.size());
  EXPECT_EQ(second.size(), names.size());
  const auto column = [&](const std::string& name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  ASSERT_LT(column("test.limit.ratio.median"), names.size());
  EXPECT_EQ(first[column("test.test")], "\"pp10\"");
  EXPECT_EQ(first[column("test.limit.ratio.median")], "");
  EXPECT_EQ(second[column("test.limit.ratio.median")], "0.5");
  EXPECT_EQ(second[column("run.cpu")], "\"A \"\"CPU\"\"\"");
}

}  // namespace
}  // namespace tierd
