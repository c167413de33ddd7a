// The golden models of tests/golden with their expected logits, and functions that run them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/engine/session.h"
#include "core/formats/safetensors.h"
#include "core/run/prepare_run.h"
#include "core/run/runtime.h"
#include "core/store/source.h"

namespace tierd {

inline constexpr uint32_t kGoldenTokens = 24;

// Returns "llama2", "gguf-llama-q4_0", …; sorted.
inline std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TIERD_SOURCE_DIR "/tests/golden/models")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Returns those that differ in what they compute: without the folders whose family is there in GGUF as well.
inline std::vector<std::string> golden_runs() {
  std::vector<std::string> names = golden_names();
  const auto is_twin = [all = names](const std::string& name) {
    constexpr std::string_view kEnding = "-bf16";
    if (!name.ends_with(kEnding) || name.starts_with("gguf-")) return false;
    const std::string family = name.substr(0, name.size() - kEnding.size());
    return std::ranges::find(all, "gguf-" + family + "-q5_1") != all.end();
  };
  std::erase_if(names, is_twin);
  return names;
}

inline std::string golden_folder(const std::string& name) {
  return TIERD_SOURCE_DIR "/tests/golden/models/" + name;
}

// Returns the model's path as a user would name it: the folder, or its (first) GGUF file.
inline std::string golden_path(const std::string& name) {
  std::string first;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder(name))) {
    const std::string path = entry.path().string();
    if (entry.path().extension() == ".gguf" && (first.empty() || path < first)) first = path;
  }
  return first.empty() ? golden_folder(name) : first;
}

inline bool golden_is_mixture(const std::string& name) {
  const auto source = open_source(golden_path(name));
  EXPECT_TRUE(source.ok()) << source.error().line();
  return (*source)->config().is_mixture();
}

struct Golden {
  std::vector<uint32_t> tokens;
  std::vector<float> logits;  // [tokens][vocab]
};

inline Golden read_golden(const std::string& name) {
  const auto file = File::open(golden_folder(name) + "/golden.safetensors");
  EXPECT_TRUE(file.ok()) << file.error().line();
  const auto tensors = read_safetensors_header(*file);
  EXPECT_TRUE(tensors.ok()) << tensors.error().line();
  Golden golden;
  for (const SafetensorsTensor& tensor : *tensors) {
    const auto read = [&](auto& out) {
      out.resize(tensor.bytes / sizeof(out[0]));
      EXPECT_TRUE(file->read_exact(tensor.offset, std::as_writable_bytes(std::span(out))).ok());
    };
    if (tensor.name == "tokens") read(golden.tokens);
    if (tensor.name == "logits") read(golden.logits);
  }
  EXPECT_EQ(golden.tokens.size(), kGoldenTokens);
  return golden;
}

// Points TIERD_CACHE at a folder for the stores that this test program makes.
inline std::string use_test_cache() {
  const std::string folder = testing::TempDir() + "tierd-e2e-cache-" + std::to_string(getpid());
  setenv("TIERD_CACHE", folder.c_str(), 1);
  return folder;
}

inline void expect_the_same_bits(std::span<const float> logits, std::span<const float> expected) {
  ASSERT_EQ(logits.size(), expected.size());
  EXPECT_EQ(std::memcmp(logits.data(), expected.data(), expected.size_bytes()), 0);
}

// Returns a runtime of the configuration whose weights are not yet loaded.
inline Result<std::unique_ptr<Runtime>> make_runtime(const Config& config, const RuntimeOptions& options) {
  TIERD_ASSIGN(RunPlan plan, prepare_run(config, options));
  return Runtime::create(std::move(plan), options);
}

// Feeds `count` tokens from `first` on as one batch and appends their logits, [count][vocab].
inline Status feed(Engine& engine, std::span<const uint32_t> tokens, uint32_t first, uint32_t count,
                   std::vector<float>& logits) {
  std::vector<RowInfo> rows;
  std::vector<uint32_t> wanted;
  for (uint32_t i = 0; i < count; ++i) {
    rows.push_back({tokens[first + i], first + i, 0, 0});
    wanted.push_back(i);
  }
  TIERD_ASSIGN(const std::span<const float> out, engine.step(rows, wanted, count > 1));
  for (uint32_t i = 0; i < count; ++i) {
    const auto row = out.subspan(i * (out.size() / count), engine.vocab_size());
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return {};
}

// Returns the logits of every position, [tokens][vocab]. Feeds the tokens in chunks of at most `chunk`.
inline Result<std::vector<float>> run_all_logits(const Config& config, std::span<const uint32_t> tokens,
                                                 uint32_t chunk, bool fit = true) {
  RuntimeOptions options;
  options.quiet = true;
  options.fit = fit;
  options.logit_rows = chunk;
  TIERD_ASSIGN(const std::unique_ptr<Runtime> runtime, make_runtime(config, options));
  TIERD_TRY(runtime->load());
  Engine& engine = runtime->engine();
  const uint32_t most = std::min({chunk, engine.max_rows(), engine.logit_rows()});
  std::vector<float> logits;
  for (uint32_t done = 0; done < tokens.size();) {
    const auto n = std::min<uint32_t>(most, static_cast<uint32_t>(tokens.size()) - done);
    TIERD_TRY(feed(engine, tokens, done, n, logits));
    done += n;
  }
  TIERD_TRY(engine.drain());
  return logits;
}

// Selects the device through which the flash agent reads.
inline void use_device(Config& config, const std::string& device) {
  config.tier("flash").settings.push_back({"device", device, "test"});
}

// Sets the largest gap that the flash agent reads through, and where small reads land.
inline void read_gaps(Config& config, const std::string& gap) {
  config.tier("flash").settings.push_back({"gap", gap, "test"});
}
inline void land_reads(Config& config, const std::string& landing) {
  config.tier("flash").settings.push_back({"landing", landing, "test"});
}

inline Config golden_config(const std::string& name) {
  Config config;
  config.model = golden_path(name);
  config.context = kGoldenTokens;
  config.threads = 1;
  config.bind = false;
  return config;
}

}  // namespace tierd
