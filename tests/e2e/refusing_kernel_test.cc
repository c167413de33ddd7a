// Runs where the kernel, a sandbox or a file system refuses a call. A run works without it, or prints one
// line that names what is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/e2e/program.h"
#include "tests/refuse_calls.h"
#include "tests/sanitized.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class RefusingKernel : public ProgramTest {
 protected:
  static std::vector<std::string> arguments(const std::string& thread) {
    return {"--config", config_file("hybrid"),
            "-m",       kDemo,
            "-p",       "To be",
            "-n",       "8",
            "-t",       "1",
            "--temp",   "0",
            "--set",    "tiers.flash.thread=" + thread};
  }
  static Ended run_with(std::function<void()> prepare, const std::string& thread = "kernel") {
    return run_tierd(arguments(thread), {.prepare = std::move(prepare)});
  }
};

TEST_F(RefusingKernel, IoUringMayNotBeEntered) {
  const Ended free = run_with({});
  ASSERT_EQ(free.status, 0) << free.err;
  const Ended refused = run_with([] { refuse_calls({SYS_io_uring_enter}, EPERM); });
  EXPECT_EQ(refused.status, 0) << refused.err;
  EXPECT_EQ(refused.out, free.out);
  EXPECT_THAT(refused.err, HasSubstr("io_uring refused by io_uring_enter: Operation not permitted"));
}

TEST_F(RefusingKernel, NoEventfd) {
  const Ended free = run_with({});
  for (const char* thread : {"kernel", "own"}) {
    const Ended refused = run_with([] { refuse_calls({SYS_eventfd2, SYS_eventfd}, ENOSYS); }, thread);
    EXPECT_EQ(refused.status, 0) << refused.err;
    EXPECT_EQ(refused.out, free.out);
  }
}

// hwloc would repeat the refused call without end.
TEST_F(RefusingKernel, NoAffinity) {
  const Ended free = run_with({});
  const Ended refused = run_with([] { refuse_calls({SYS_sched_getaffinity}, EPERM); });
  EXPECT_EQ(refused.status, 0) << refused.err;
  EXPECT_EQ(refused.out, free.out);
}

// Some network file systems have no locks. A store is made without them.
TEST_F(RefusingKernel, NoLocks) {
  for (const int error : {ENOLCK, EOPNOTSUPP}) {
    const Ended ended = run_with([error] { refuse_calls({SYS_flock}, error); });
    EXPECT_EQ(ended.status, 0) << ended.err;
    const size_t first = ended.err.find("cannot be locked");
    if (error == ENOLCK) {
      ASSERT_NE(first, std::string::npos) << ended.err;
      EXPECT_EQ(ended.err.find("cannot be locked", first + 1), std::string::npos) << ended.err;
      ASSERT_EQ(cached().size(), 1u);
    }
  }
}

TEST_F(RefusingKernel, NoProc) {
  const Ended free = run_with({});
  std::string command = "umount -l /proc && exec " TIERD_BIN_TIERD;
  for (const std::string& argument : arguments("kernel")) command += " '" + argument + "'";
  if (::geteuid() != 0 ||
      run_program("/usr/bin/unshare", {"-m", "/bin/sh", "-c", "umount -l /proc"}).status != 0)
    GTEST_SKIP() << "/proc cannot be unmounted here";
  const Ended ended = run_program("/usr/bin/unshare", {"-m", "/bin/sh", "-c", command});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(ended.out, free.out);
}

}  // namespace
}  // namespace tierd
