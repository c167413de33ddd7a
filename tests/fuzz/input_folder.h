// The files of one input. Readers take paths, so the bytes go through a folder of this process's own, below
// $TMPDIR, which ci/fuzz puts in memory.
#pragma once

#include <string>
#include <string_view>

namespace tierd {

class InputFolder {
 public:
  InputFolder();
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;
  ~InputFolder();

  const std::string& path() const { return path_; }
  // Writes a file over the one of the input before, and gives its path.
  std::string write(const char* name, std::string_view bytes) const;
  // The same for a file that may be absent, as it is where `bytes` is empty.
  void write_unless_empty(const char* name, std::string_view bytes) const;

 private:
  std::string path_;
};

}  // namespace tierd
