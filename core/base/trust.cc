#include "core/base/trust.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace tierd {
namespace {

Error untrusted(const std::string& path, const char* what, const char* mended_by) {
  return {Code::invalid_argument, path, fmt::format("{}: {}", what, mended_by)};
}

Status check_mode(const std::string& path, const struct stat& found) {
  if (S_ISDIR(found.st_mode) && (found.st_mode & S_ISVTX) != 0) return {};
  if ((found.st_mode & S_IWOTH) != 0)
    return untrusted(path, "everybody can write to it, and it is not trusted so", "chmod o-w");
  if ((found.st_mode & S_IWGRP) != 0 && found.st_gid != ::getegid() && found.st_gid != 0)
    return untrusted(path, "another group can write to it, and it is not trusted so", "chmod g-w");
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
    return untrusted(path, "belongs to another user, and is not trusted",
                     "TIERD_CACHE names a folder of your own");
  // With the sticky bit others cannot replace existing files, but can create missing ones.
  if ((found.st_mode & S_IWOTH) != 0)
    return untrusted(path, "everybody can write to it, and what lies there is not trusted", "chmod o-w");
  return check_mode(path, found);
}

}  // namespace tierd
