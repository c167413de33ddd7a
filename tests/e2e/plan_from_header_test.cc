// --check needs only the headers of a model's files: it writes nothing, reads no weights, and refuses
// whatever a run would refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/described_machine.h"
#include "tests/e2e/program.h"
#include "tests/sanitized.h"
#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class PlanFromHeader : public ProgramTest {
 protected:
  // Returns a GGUF file of this shape whose weights are file holes.
  std::string hollow(const std::string& shape, const std::string& encoding = "q4_0") const {
    const std::string path =
        folder().path() + "/" + fs::path(shape).stem().string() + "-" + encoding + ".gguf";
    const Ended made = run_program(
        TIERD_BIN_SYNTH, {"--shape", shape, "--encoding", encoding, "--format", "gguf", "--hollow", path});
    EXPECT_EQ(made.status, 0) << made.err;
    return path;
  }
  static std::vector<std::string> check(const std::string& model, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"-m", model, "--check"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  void expect_refused(const std::vector<std::string>& arguments, const std::string& what) const {
    const Ended refused = run_tierd(arguments);
    EXPECT_EQ(refused.status, 2) << refused.err;
    EXPECT_THAT(refused.out, IsEmpty());
    EXPECT_THAT(refused.err, HasSubstr(what));
    EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
    EXPECT_THAT(cached(), IsEmpty()) << what;
  }
};

// A model that fits most disks and of which a part fits in memory. A plan is refused where the store's disk
// has too little space.
TEST_F(PlanFromHeader, OfALargeModelWritesNothing) {
  const std::string model = hollow("llama-2-13b");
  const Ended run = run_tierd(
      check(model, {"--config", config_file("hybrid"), "--set", "tiers.dram.capacity=40%", "--json"}));
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(cached(), IsEmpty());
  const json plan = json::parse(run.out);
  EXPECT_EQ(plan["store"]["made"], false);
  // 13 billion weights of 4.5 bits and little more.
  EXPECT_NEAR(plan["store"]["to_write_bytes"].get<double>(), 7.32e9, 0.1e9);
  EXPECT_GT(plan["tiers"][0]["budget"]["least_bytes"], 0);
  EXPECT_EQ(plan["encoded_anew"], json::array());
  // Simulating the cache's policy gives the resident bytes and the bytes read.
  const json& expected = plan["expected"];
  const double all =
      expected["flash_bytes_per_token"].get<double>() + expected["resident_bytes_per_token"].get<double>();
  EXPECT_NEAR(all, 7.23e9, 0.1e9);
  // A file of holes cannot be used to measure the disk.
  EXPECT_TRUE(expected["tokens_per_second"].is_null());
  EXPECT_THAT(expected["unknown"].get<std::string>(), HasSubstr("has holes"));
  if (kSanitized) return;
  rusage usage{};
  ASSERT_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 64 << 10) << "KiB, of tier-synth and tierd";
}

TEST_F(PlanFromHeader, SaysWhatIsEncodedAnewAndWhatIsUnknown) {
  const std::string k_quants = hollow("llama-2-7b", "q4_k");
  const Ended columns =
      run_tierd(check(k_quants, {"--config", config_file("activeflow"), "--set", "tiers.dram.capacity=60%"}));
  EXPECT_EQ(columns.status, 0) << columns.err;
  EXPECT_THAT(columns.out, HasSubstr("qkv, o, up, down from q4_k as q4_0, relative error "));
  EXPECT_THAT(columns.out, HasSubstr("unknown: "));
  const Ended rows = run_tierd(check(k_quants, {"--config", config_file("hybrid")}));
  EXPECT_EQ(rows.status, 0) << rows.err;
  EXPECT_THAT(rows.out, Not(HasSubstr("encoded anew")));
  const std::string shape = folder().path() + "/mixture.toml", store = folder().path() + "/mixture";
  std::ofstream(shape)
      << "architecture = \"mixtral\"\nn_layers = 4\nd_model = 256\nn_heads = 4\nn_kv_heads = 4\n"
         "head_dim = 64\nd_ff = 256\nn_experts = 8\nexperts_per_token = 2\nvocab_size = 600\n"
         "context_length = 128\nnorm = \"rms\"\nnorm_eps = 1e-05\nactivation = \"silu\"\ngated = true\n"
         "position = \"rope_half\"\nrope_theta = 10000.0\n";
  const Ended made = run_program(TIERD_BIN_SYNTH, {"--shape", shape, store});
  ASSERT_EQ(made.status, 0) << made.err;
  const std::string machine = folder().path() + "/machine.toml";
  write_machine(machine);
  const Ended mixture =
      run_tierd(check(store, {"--config", config_file("moe-streaming"), "--set", "run.machine=" + machine,
                              "--set", "tiers.dram.capacity=50%", "--fit", "-t", "1"}));
  EXPECT_EQ(mixture.status, 0) << mixture.err;
  EXPECT_THAT(mixture.out, HasSubstr("unknown: the bytes of a token depend on the text; "));
}

// Editions made for an upper tier are not stored. --check and the report print their cost.
TEST_F(PlanFromHeader, SaysWhatIsRecodedAndWhatThatCosts) {
  const std::vector<std::string> gpu = {
      "--set", "model.layout=neuron",       "--set", "tiers.dram.compute=false",
      "--set", "tiers.gpu.kind=gpu",        "--set", "tiers.gpu.over=dram",
      "--set", "tiers.gpu.backend=host",    "--set", "run.dense=gpu",
      "--set", "tiers.gpu.recode=q8_0,q4_0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), gpu.begin(), gpu.end());
    return more;
  };
  const std::string model = hollow("tinyllama-1.1b", "f16");
  const Ended checked = run_tierd(check(model, with({"--json"})));
  ASSERT_EQ(checked.status, 0) << checked.err;
  const json plan = json::parse(checked.out);
  ASSERT_EQ(plan["recoded"].size(), 2u);
  const json& last = plan["recoded"][1];
  EXPECT_EQ(last["to"], "q4_0");
  EXPECT_EQ(last["sites"], json::array({"ffn"}));
  EXPECT_EQ(last["in"], json::array({"gpu"}));
  EXPECT_EQ(last["read_bytes"], 3 * 2048 * 2) << "two rows and a column";
  EXPECT_EQ(last["moved_bytes"], 3 * 1152);
  EXPECT_EQ(last["unstored_bytes"], 22 * 5632 * 3 * 1152);
  EXPECT_TRUE(last["encoded_bytes_per_second"].is_null());
  EXPECT_EQ(
      plan["store"]["to_write_bytes"],
      json::parse(
          run_tierd(check(model, {"--set", "model.layout=neuron", "--json"})).out)["store"]["to_write_bytes"])
      << "nothing more is stored";
  expect_refused(
      check(model, with({"--set", "model.editions=q4_0"})),
      "tiers.gpu.recode: the store already has several editions (model.editions); expected \"none\"");
  expect_refused(check(model, with({"--set", "model.layout=row"})),
                 "tiers.gpu.recode: layout 'row' has neither");
  expect_refused(check(model, with({"--set", "model.compression=bitmap"})),
                 "tiers.gpu.recode: the store is compressed (bitmap)");
  expect_refused(check(model, with({"--set", "tiers.gpu.recode=q4_0,q8_0"})),
                 "tiers.gpu.recode: q8_0 of layers.0.ffn has no fewer bits than q4_0, the edition before it");
  expect_refused(check(model, with({"--set", "tiers.gpu.recode=q4_k"})), "columns cannot be q4_k");

  std::vector<std::string> run = {"-m", kDemo, "-p", "The sea", "-n", "2", "-t", "1"};
  for (const std::string& argument :
       with({"--set", "quantizer.name=mixed", "--set", "quantizer.ratios=0/0/100"}))
    run.push_back(argument);
  const Ended ended = run_tierd(run);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("recoded      ffn as q8_0 (relative error 0.00"));
  EXPECT_THAT(ended.err, HasSubstr("a thread encodes "));
  run.emplace_back("--json");
  const json report = json::parse(run_tierd(run).out)["report"];
  EXPECT_NEAR(report["recoded"][1]["error"].get<double>(), 0.09, 0.03);
  EXPECT_GT(report["recoded"][1]["encoded_bytes_per_second"], 0);
}

// The flash bytes that --check expects are those of a run, because it simulates the cache's policy.
TEST_F(PlanFromHeader, BytesFromFlashAreThoseOfARun) {
  for (const char* cache : {"pinned", "lru", "none"}) {
    SCOPED_TRACE(cache);
    const std::vector<std::string> same = {"-m",       kDemo,
                                           "--config", config_file("hybrid"),
                                           "--set",    std::string("cache.name=") + cache,
                                           "--set",    "tiers.dram.capacity=60%",
                                           "--json",   "-t",
                                           "1"};
    std::vector<std::string> checked = same, run = same;
    checked.emplace_back("--check");
    for (const char* argument : {"-p", "The sea", "-n", "40", "--ignore-eos"}) run.emplace_back(argument);
    const Ended before = run_tierd(checked), ended = run_tierd(run), after = run_tierd(checked);
    ASSERT_EQ(before.status, 0) << before.err;
    ASSERT_EQ(ended.status, 0) << ended.err;
    const double bytes = json::parse(ended.out)["report"]["decode"]["wanted_bytes"].get<double>();
    for (const Ended* check : {&before, &after}) {
      const double expected = json::parse(check->out)["expected"]["flash_bytes_per_token"].get<double>();
      // --check assumes that every token reads another embedding row; a text uses some rows again.
      EXPECT_GT(expected / bytes, 0.98);
      EXPECT_LT(expected / bytes, 1.15);
    }
  }
}

TEST_F(PlanFromHeader, WhatCannotRunIsRefused) {
  const std::string model = hollow("tinyllama-1.1b");
  const std::string hybrid = config_file("hybrid");
  expect_refused(check(model, {"--config", hybrid, "-c", "999999"}),
                 "run.context: 999999, expected at most the 2048 positions");
  expect_refused(check(model, {"--config", hybrid, "--set", "tiers.dram.capacity=1%"}), "needs at least");
  expect_refused(check(model, {"--config", hybrid, "--set", "cache.name=lrru"}), "lrru");
  expect_refused(check(model, {"--config", hybrid, "--chat-template", "foo"}), "foo");
  expect_refused(check(folder().path() + "/none.gguf"), "none.gguf");

  const std::string short_file = hollow("tinyllama-1.1b", "f16");
  fs::resize_file(short_file, fs::file_size(short_file) - 4096);
  expect_refused(check(short_file), "tinyllama-1-f16.gguf: tensor");

  // The whole header and a part of the holes.
  std::string text(8 << 20, '\0');
  std::ifstream(model, std::ios::binary).read(text.data(), static_cast<std::streamsize>(text.size()));
  const auto altered = [&](const std::string& from, const std::string& to) {
    EXPECT_EQ(from.size(), to.size());
    std::string other = text;
    for (size_t at = other.find(from); at != std::string::npos; at = other.find(from, at + 1))
      other.replace(at, from.size(), to);
    const std::string path = folder().path() + "/altered.gguf";
    std::ofstream(path, std::ios::binary | std::ios::trunc) << other;
    fs::resize_file(path, fs::file_size(model));
    return path;
  };
  expect_refused(check(altered("llama", "lamla")), "lamla");
  expect_refused(check(altered("tokenizer.ggml.model", "tokenizer.ggml.modem")), "--tokenizer");
  expect_refused(check(altered("blk.3.ffn_up.weight", "blk.3.ffn_us.weight")), "\"layers.3.up\" is missing");

  const std::string tables = folder().path() + "/tables.safetensors";
  auto writer = SafetensorsWriter::create(tables, {{"layers.0.ffn.a", "F32", {1}}},
                                          {{kMadeFor, "llama, 32 layers, width 4096"}});
  ASSERT_TRUE(writer.ok());
  const float value = 1;
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(&value, 1))).ok());
  ASSERT_TRUE(writer->finish().ok());
  expect_refused(
      check(model, {"--config", config_file("llm-in-a-flash"), "--set", "predictor.tensors=" + tables}),
      "its tensors were made for another model (llama, 32 layers, width 4096)");
}

TEST_F(PlanFromHeader, WhatIsTooLargeIsNamed) {
  // About 700 GB.
  const std::string shape = folder().path() + "/deep.toml";
  std::string text = file_text(TIERD_SOURCE_DIR "/configs/models/tinyllama-1.1b.toml");
  const size_t layers = text.find("n_layers = 22");
  if (layers == std::string::npos) GTEST_SKIP() << "another shape file";
  text.replace(layers, 13, "n_layers = 4000");
  std::ofstream(shape) << text;
  const std::string model = hollow(shape, "f32");
  expect_refused(check(model, {"--config", config_file("hybrid"), "-c", "256"}), "but its disk has ");
  expect_refused(check(model, {"--config", config_file("activeflow")}), "extents for this model");
}

// A run refuses before it converts anything, also where a strategy is the reason.
TEST_F(PlanFromHeader, ARunRefusesBeforeItWrites) {
  const std::string model = kDemo;
  const std::string tables = folder().path() + "/wrong.safetensors";
  auto writer = SafetensorsWriter::create(
      tables, {{"layers.0.ffn.a", "F32", {3, 5}}, {"layers.0.ffn.b", "F32", {3, 5}}});
  ASSERT_TRUE(writer.ok());
  const std::vector<float> values(30, 1.0f);
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(values))).ok());
  ASSERT_TRUE(writer->finish().ok());
  const Ended refused = run_tierd({"-m", model, "-p", "x", "-n", "1", "--config",
                                   config_file("llm-in-a-flash"), "--set", "predictor.tensors=" + tables});
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.err, HasSubstr("layers.0.ffn.a"));
  EXPECT_THAT(cached(), IsEmpty());
}

}  // namespace
}  // namespace tierd
