// Reads and writes files in tests.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace tierd {

// Tokenizer files whose encodings are known. Ends with a slash.
inline const std::string kGoldenFolder = std::string(TIERD_SOURCE_DIR) + "/tests/golden/tokenizer/";

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns a folder of this run below TempDir, removed when the run ends.
inline const std::filesystem::path& run_folder() {
  struct Folder {
    std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) / ("tierd_text." + std::to_string(getpid()));
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

// Writes into a folder of the running test and returns the path.
inline std::string write_text(const std::string& name, const std::string& text) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::filesystem::path folder =
      run_folder() / (std::string(test->test_suite_name()) + "." + test->name());
  std::filesystem::create_directories(folder);
  const std::string path = (folder / name).string();
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace tierd
