#include "core/run/timeline_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tierd {
namespace {

Error cannot_write(const std::string& path) {
  return {Code::io_error, path, fmt::format("cannot be written: {}", std::strerror(errno))};
}

}  // namespace

Result<std::unique_ptr<TimelineFile>> TimelineFile::create(const std::string& path, TimelineNames names,
                                                           const Clock& clock) {
  std::string unfinished = path + ".unfinished";
  std::FILE* file = std::fopen(unfinished.c_str(), "wb");
  if (file == nullptr) return cannot_write(unfinished);
  names.start_ns = clock.now_ns();
  return std::unique_ptr<TimelineFile>(
      new TimelineFile(path, std::move(unfinished), file, std::move(names), clock));
}

TimelineFile::TimelineFile(std::string path, std::string unfinished, std::FILE* file, TimelineNames names,
                           const Clock& clock)
    : path_(std::move(path)),
      unfinished_(std::move(unfinished)),
      file_(file),
      names_(std::move(names)),
      recorder_(timeline_, clock) {}

TimelineFile::~TimelineFile() {
  if (file_) (void)std::remove(unfinished_.c_str());
}

Status TimelineFile::finish() {
  if (!file_) return {};
  TIERD_TRY(write_chrome_trace(timeline_, names_, file_.get(), unfinished_));
  if (fsync(fileno(file_.get())) != 0) return cannot_write(unfinished_);
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) return cannot_write(path_);
  file_.reset();
  return {};
}

}  // namespace tierd
