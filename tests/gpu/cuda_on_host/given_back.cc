// Linked into a test, checks memory that is returned to the system: the double's device must not have it
// registered.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/gpu/cuda_on_host/double.h"

extern "C" int madvise(void* p, size_t bytes, int advice) noexcept {
  if (advice == MADV_DONTNEED) on_host::check_given_back(p, bytes);
  return static_cast<int>(::syscall(SYS_madvise, p, bytes, advice));
}
extern "C" int munmap(void* p, size_t bytes) noexcept {
  on_host::check_given_back(p, bytes);
  return static_cast<int>(::syscall(SYS_munmap, p, bytes));
}
