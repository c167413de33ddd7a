#include "tools/tier/calibrate/touch_latency.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/base/descriptor.h"
#include "core/base/random.h"
#include "core/base/statistics.h"
#include "core/base/time.h"

namespace tierd {
namespace {

constexpr uint32_t kPlaces = 400;

TouchLatency::Pass pass_of(const std::vector<double>& seconds) {
  return {median(seconds), mean(seconds)};
}

}  // namespace

Result<TouchLatency> measure_touch(const std::string& path, uint64_t seed) {
  const auto failed = [&] {
    return Error{errno == ENOENT ? Code::not_found : Code::io_error, path, std::strerror(errno)};
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  struct stat facts {};
  if (!file.open() || ::fstat(file.get(), &facts) != 0) return failed();
  const uint64_t blocks = static_cast<uint64_t>(facts.st_size) / kTouchBytes;
  if (blocks == 0) {
    return Error{Code::invalid_argument, path,
                 fmt::format("has less than the {} bytes of one read", kTouchBytes)};
  }
  const std::unique_ptr<void, decltype(&std::free)> memory(std::aligned_alloc(4096, kTouchBytes), &std::free);
  if (memory == nullptr) return Error{Code::no_space, path, "cannot allocate the buffer of a read"};
  // One place in each equal part of the file, so that a pass reads no place twice.
  const auto places = static_cast<uint32_t>(std::min<uint64_t>(kPlaces, blocks));
  Random random(seed);
  std::vector<uint64_t> offsets;
  for (uint32_t i = 0; i < places; ++i) {
    const uint64_t first = blocks * i / places, end = blocks * (i + 1) / places;
    offsets.push_back((first + random.below(static_cast<uint32_t>(end - first))) * kTouchBytes);
  }
  for (size_t i = offsets.size(); i > 1; --i)
    std::swap(offsets[i - 1], offsets[random.below(static_cast<uint32_t>(i))]);
  TouchLatency found{.reads = places, .first = {}, .again = {}};
  for (TouchLatency::Pass* const pass : {&found.first, &found.again}) {
    std::vector<double> seconds;
    for (const uint64_t offset : offsets) {
      const uint64_t begin = now_ns();
      const ssize_t read = ::pread(file.get(), memory.get(), kTouchBytes, static_cast<off_t>(offset));
      if (read < 0) return failed();
      if (static_cast<uint64_t>(read) != kTouchBytes)
        return Error{Code::io_error, path, fmt::format("a read at byte {} returned {} bytes", offset, read)};
      seconds.push_back(static_cast<double>(now_ns() - begin) * 1e-9);
    }
    *pass = pass_of(std::move(seconds));
  }
  return found;
}

}  // namespace tierd
