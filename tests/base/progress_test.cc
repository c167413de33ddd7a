// The lines of a long job where standard error is no terminal.
#include "core/base/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tierd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::string said(const std::function<void()>& job) {
  testing::internal::CaptureStderr();
  job();
  return testing::internal::GetCapturedStderr();
}

TEST(Progress, CountsWhatIsThereAndWhatIsDoneAgain) {
  const std::string line = said([] {
    Progress progress("downloading", 1000);
    progress.skip(600);
    progress.advance(400);
    progress.take_back(1000);
    progress.advance(250);
    progress.finish();
  });
  EXPECT_THAT(line, HasSubstr("downloading  25 %  250 B of 1.00 kB"));
}

TEST(Progress, WhatWasThereIsNoSpeed) {
  const std::string line = said([] {
    Progress progress("downloading", 1000);
    progress.skip(1000);
    progress.finish();
  });
  EXPECT_THAT(line, AllOf(HasSubstr("100 %"), HasSubstr("  0 B/s")));
}

TEST(Progress, SaysLinesAboveItself) {
  const std::string lines = said([] {
    Progress progress("downloading", 10);
    progress.say_above("the connection broke off");
  });
  EXPECT_EQ(lines, "the connection broke off\n");
  EXPECT_THAT(said([] { Progress("downloading", 10, true).finish(); }), IsEmpty());
}

}  // namespace
}  // namespace tierd
