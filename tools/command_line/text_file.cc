#include "tools/command_line/text_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace tierd {

Status write_text_file(const std::string& path, const std::string& text) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return Error{Code::io_error, parent.string(), "cannot create the folder: " + error.message()};
  // A device, such as /dev/stdout, is written directly.
  const bool is_file = !std::filesystem::exists(path) || std::filesystem::is_regular_file(path);
  const std::string unfinished = is_file ? path + ".part" : path;
  std::ofstream out(unfinished, std::ios::trunc);
  out << text;
  out.close();
  if (!out) return Error{Code::io_error, path, "cannot be written"};
  if (is_file && std::rename(unfinished.c_str(), path.c_str()) != 0)
    return Error{Code::io_error, path, std::string("cannot be written: ") + std::strerror(errno)};
  return {};
}

}  // namespace tierd
