#include "core/base/trust.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tierd {
namespace {

Error untrusted(const std::string& path, const char* what, const std::string& remedy) {
  return {Code::invalid_argument, path, fmt::format("is not trusted, because {}; {}", what, remedy)};
}

Status check_mode(const std::string& path, const struct stat& found) {
  if (S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0) return {};
  if ((found.st_mode & S_IWOTH) != 0)
    return untrusted(path, "every user can write to it", "chmod o-w " + path);
  if ((found.st_mode & S_IWGRP) != 0 && found.st_gid != ::getegid() && found.st_gid != 0)
    return untrusted(path, "another group can write to it", "chmod g-w " + path);
  return {};
}

Result<struct stat> look(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0) return found;
  return Error{errno == ENOENT ? Code::not_found : Code::io_error, path, std::strerror(errno)};
}

}  // namespace

Status check_code(const std::string& path) {
  std::error_code unknown;
  const std::filesystem::path real = std::filesystem::canonical(path, unknown);
  if (unknown) return Error{Code::not_found, path, unknown.message()};
  for (const std::string& each : {real.string(), real.parent_path().string()}) {
    TIERD_ASSIGN(const struct stat found, look(each));
    TIERD_TRY(check_mode(each, found));
  }
  return {};
}

Status check_folder(const std::string& path) {
  TIERD_ASSIGN(const struct stat found, look(path));
  const uid_t own = ::geteuid();
  if (own != 0 && found.st_uid != own && found.st_uid != 0)
    return untrusted(path, "it belongs to another user", "set TIERD_CACHE to a folder of your own");
  // With the sticky bit others cannot replace existing files, but can create missing ones.
  if ((found.st_mode & S_IWOTH) != 0)
    return untrusted(path, "every user can write to it", "chmod o-w " + path);
  return check_mode(path, found);
}

}  // namespace tierd
