#include "tests/fuzz/input_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/base/check.h"

namespace tierd {

InputFolder::InputFolder() : path_((std::filesystem::temp_directory_path() / "tierd-fuzz-XXXXXX").string()) {
  TIERD_CHECK_MSG(::mkdtemp(path_.data()) != nullptr, path_);
}

InputFolder::~InputFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string InputFolder::write(const char* name, std::string_view bytes) const {
  const std::string file = path_ + "/" + name;
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  TIERD_CHECK_MSG(descriptor >= 0, file);
  const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
  TIERD_CHECK_MSG(written == static_cast<ssize_t>(bytes.size()), file);
  ::close(descriptor);
  return file;
}

void InputFolder::write_unless_empty(const char* name, std::string_view bytes) const {
  if (!bytes.empty()) {
    write(name, bytes);
  } else {
    ::unlink((path_ + "/" + name).c_str());
  }
}

}  // namespace tierd
