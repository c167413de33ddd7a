#include "core/base/wake_signal.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace tierd {

WakeSignal::WakeSignal() : read_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (read_.open()) return;
  const int refused = errno;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    throw std::system_error(refused, std::generic_category(), "eventfd");
  read_ = Descriptor(ends[0]);
  write_ = Descriptor(ends[1]);
}

void WakeSignal::raise() {
  const int before = errno;
  if (write_.open()) {
    const std::byte one{1};
    (void)!::write(write_.get(), &one, sizeof one);  // a full pipe is readable already
  } else {
    const uint64_t one = 1;
    (void)!::write(read_.get(), &one, sizeof one);
  }
  errno = before;
}

uint64_t WakeSignal::take() {
  uint64_t count = 0;
  if (!write_.open()) return ::read(read_.get(), &count, sizeof count) == sizeof count ? count : 0;
  std::array<std::byte, 512> bytes;
  for (ssize_t got = 0; (got = ::read(read_.get(), bytes.data(), bytes.size())) > 0;)
    count += static_cast<uint64_t>(got);
  return count;
}

}  // namespace tierd
