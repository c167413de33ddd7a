// Folders that stand for control groups.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tierd {

inline void write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

// Returns an empty folder of this name. Test suites have folders of their own.
inline std::string fresh_folder(const std::string& name) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = testing::TempDir() + test->test_suite_name() + "-" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace tierd
