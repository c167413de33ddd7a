// A fresh folder under the test's temporary directory, removed with its contents.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include <gtest/gtest.h>

namespace tierd {

class TempFolder {
 public:
  TempFolder() {
    static int count = 0;
    path_ = std::filesystem::path(testing::TempDir()) /
            ("tierd-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string path() const { return path_; }
  // Writes a file of the folder and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::filesystem::remove(path_ / name);  // overwriting makes some file systems flush at every close
    std::ofstream out(path_ / name, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_TRUE(out.good()) << name;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tierd
