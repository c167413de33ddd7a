// The files of one input. Readers take paths, so the bytes are written to a folder of this process below
// $TMPDIR, which ci/fuzz places in memory.
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
  // Writes a file over that of the previous input and returns its path.
  std::string write(const char* name, std::string_view bytes) const;
  // The same for an optional file, which is absent if `bytes` is empty.
  void write_unless_empty(const char* name, std::string_view bytes) const;

 private:
  std::string path_;
};

}  // namespace tierd
