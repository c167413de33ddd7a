#include "tiers/flash/device.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "core/base/descriptor.h"
#include "tiers/flash/device_kinds.h"

namespace tierd {
namespace {

constexpr uint32_t kMostDepth = 4096;

Error system_error(const std::string& path, std::string_view what, int error) {
  return {error == ENOENT ? Code::not_found : Code::io_error, path,
          fmt::format("{}: {}", what, std::generic_category().message(error))};
}

Result<Descriptor> open_file(const std::string& path, bool direct) {
  struct stat status {};
  // Checked before opening, because opening a pipe would wait for its writer.
  if (::stat(path.c_str(), &status) != 0) return system_error(path, "cannot open for reading", errno);
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
    return Error{Code::io_error, path, "is neither a file nor a block device"};
  }
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0)));
  if (!file.open() && direct && errno == EINVAL) {
    spdlog::warn("{}: the file system has no direct I/O, reading through the page cache", path);
    file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!file.open()) return system_error(path, "cannot open for reading", errno);
  return file;
}

}  // namespace

Result<std::unique_ptr<BlockDevice>> open_device(const std::string& path, const DeviceOptions& options) {
  if (options.depth == 0 || options.depth > kMostDepth) {
    return Error{Code::invalid_argument, path,
                 fmt::format("the queue depth is {}, expected 1 to {}", options.depth, kMostDepth)};
  }
  TIERD_ASSIGN(Descriptor file, open_file(path, options.direct));
  if (options.kind == DeviceKind::pread) return make_pread_device(file, path, options.depth);
  auto device = make_uring_device(file, path, options.depth);
  if (device.ok() || options.kind == DeviceKind::io_uring) return device;
  spdlog::warn("{}; reading with pread", device.error().line());
  return make_pread_device(file, path, options.depth);
}

}  // namespace tierd
