#include "core/system/memory_pressure.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tierd {
namespace {

class Stalls final : public PressureSource {
 public:
  explicit Stalls(int trigger) : trigger_(trigger) {}
  ~Stalls() override { close(trigger_); }
  Stalls(const Stalls&) = delete;
  Stalls& operator=(const Stalls&) = delete;

  bool pressed() override {
    pollfd event{trigger_, POLLPRI, 0};
    return poll(&event, 1, 0) == 1 && (event.revents & POLLPRI) != 0;
  }

 private:
  int trigger_;
};

class Limit final : public PressureSource {
 public:
  Limit(ControlGroup group, double share) : group_(std::move(group)), share_(share) {}
  bool pressed() override { return used_share(group_).value_or(0) > share_; }

 private:
  ControlGroup group_;
  double share_;
};

}  // namespace

Result<std::unique_ptr<PressureSource>> watch_stalls(const std::vector<std::string>& files,
                                                     const StallTrigger& trigger) {
  const std::string line = fmt::format("some {} {}", trigger.stall_us, trigger.window_us);
  Error error{Code::unsupported, "memory pressure", "found no file of memory pressure"};
  for (const std::string& file : files) {
    const int opened = open(file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    // The terminating zero is written, too, as the kernel's documentation requires.
    if (opened >= 0 && write(opened, line.c_str(), line.size() + 1) >= 0)
      return std::unique_ptr<PressureSource>(std::make_unique<Stalls>(opened));
    error = {Code::unsupported, file,
             fmt::format("does not accept the trigger '{}': {}", line, std::strerror(errno))};
    if (opened >= 0) close(opened);
  }
  return error;
}

std::vector<std::string> stall_files() {
  std::vector<std::string> files;
  if (const auto group = own_control_group("memory"); group && group->v2)
    files.push_back(group->directory + "/memory.pressure");
  files.emplace_back("/proc/pressure/memory");
  return files;
}

Result<std::unique_ptr<PressureSource>> watch_limit(const ControlGroup& group, double share) {
  if (!used_share(group)) {
    return Error{Code::unsupported, group.directory,
                 "this memory cgroup has no limit, or its files cannot be read"};
  }
  return std::unique_ptr<PressureSource>(std::make_unique<Limit>(group, share));
}

}  // namespace tierd
