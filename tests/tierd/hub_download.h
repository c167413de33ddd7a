// A fixture with a hub that may fail, and a cache of its own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/tierd/fake_hub.h"
#include "tools/tierd/hub/hub.h"

namespace tierd {

inline constexpr const char* kModel = "m-Q4_K_M.gguf";
inline const std::string kToken = "hf_secretsecretsecret";

inline std::string noise(size_t bytes, unsigned seed) {
  std::minstd_rand random(seed);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

class HubDownload : public testing::Test {
 protected:
  HubDownload() {
    // A proxy of the environment must not be used for the loopback interface.
    setenv("no_proxy", "127.0.0.1,localhost", 1);
    hub_.files[kModel] = {noise(300'000, 1)};
    hub_.files["README.md"] = {"hello\n", false};
    settings_.cache = folder_.path() + "/hub";
    settings_.endpoint = hub_.url();
    settings_.quiet = true;
    settings_.patience.wait = [this](std::chrono::seconds pause) { waits_.push_back(pause.count()); };
    settings_.patience.connection.idle_seconds = 1;
  }

  Result<std::string> fetch(const std::string& asked = "owner/repo", const std::string& file = {}) {
    TIERD_ASSIGN(const HubRequest request, parse_hub_request(asked, file));
    TIERD_ASSIGN(const HubModel model, find_model(request, settings_));
    return fetch_model(model, settings_);
  }
  std::string fetched(const std::string& asked = "owner/repo", const std::string& file = {}) {
    const auto path = fetch(asked, file);
    EXPECT_TRUE(path.ok()) << path.error().line();
    return path.ok() ? *path : "";
  }
  // Returns the error line, which must not contain the token.
  std::string refused(const std::string& asked = "owner/repo") {
    const auto path = fetch(asked);
    EXPECT_FALSE(path.ok());
    const std::string line = path.ok() ? "" : path.error().line();
    EXPECT_THAT(line, testing::Not(testing::AnyOf(testing::HasSubstr(kToken), testing::HasSubstr("\n"))));
    return line;
  }
  std::string repository() const { return settings_.cache + "/models--owner--repo"; }
  std::string blob(const std::string& name = kModel) const {
    return repository() + "/blobs/" + hub_.hash(name);
  }
  std::string incomplete() const { return blob() + ".incomplete"; }
  std::vector<std::string> blobs() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(repository() + "/blobs", none))
      names.push_back(entry.path().filename().string());
    return names;
  }
  // A comparison whose failure does not print the bytes.
  bool is_model(const std::string& path) const { return file_text(path) == bytes(); }
  const std::string& bytes() const { return hub_.files.at(kModel).bytes; }
  std::vector<Seen> gets() const { return hub_.seen("/resolve/"); }
  // Writes the partial download of an earlier run.
  void leave(const std::string& part) {
    std::filesystem::create_directories(repository() + "/blobs");
    std::ofstream(incomplete(), std::ios::binary) << part;
  }
  // Sets the answer to the first `times` requests of files.
  void answer_first(int times, const std::function<Answer(const Seen&)>& answer) {
    hub_.hook = [this, left = times, answer](const Seen& seen) mutable -> std::optional<Answer> {
      if (seen.path.find("/resolve/") == std::string::npos || left-- <= 0) return std::nullopt;
      return answer(seen);
    };
  }

  TempFolder folder_;
  FakeHub hub_;
  HubSettings settings_;
  std::vector<long> waits_;
};

}  // namespace tierd
