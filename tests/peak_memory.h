// Measures the memory of a piece of work in a child process.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

namespace tierd {

// Runs `work` in a child process. Returns the most bytes by which its resident memory grew. Changes made by
// `work` are lost with the child. Sanitizers add memory of their own (tests/sanitized.h).
template <class Work>
uint64_t peak_growth_bytes(Work work) {
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_maxrss) << 10;
  };
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t before = peak();
    work();
    const uint64_t grown = peak() - before;
    _exit(write(ends[1], &grown, sizeof grown) == sizeof grown ? 0 : 1);
  }
  close(ends[1]);
  uint64_t grown = UINT64_MAX;
  EXPECT_EQ(read(ends[0], &grown, sizeof grown), static_cast<ssize_t>(sizeof grown));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child ended with status " << status;
  return grown;
}

}  // namespace tierd
