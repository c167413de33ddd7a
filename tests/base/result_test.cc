#include "core/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace tierd {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return Error{Code::invalid_argument, "half", "odd"};
  return x / 2;
}
Result<int> quarter(int x) {
  TIERD_ASSIGN(const int h, half(x));
  return half(h);
}
Status even(int x) {
  TIERD_TRY(half(x));
  return {};
}

TEST(Result, CarriesValueOrError) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).code(), Code::invalid_argument);
  EXPECT_EQ(quarter(6).error().line(), "half: odd");
  EXPECT_TRUE(even(2).ok());
  EXPECT_FALSE(even(3).ok());
}

TEST(Result, MovesOut) {
  Result<std::unique_ptr<int>> r(std::make_unique<int>(7));
  const std::unique_ptr<int> p = std::move(r).value();
  EXPECT_EQ(*p, 7);
}

TEST(Result, ALineCannotDriveTheTerminal) {
  const Error error{Code::corrupt, "model.gguf", "tensor \x1b[2Jx\r"};
  EXPECT_EQ(error.line(), "model.gguf: tensor \\x1b[2Jx\\x0d");
}

TEST(Result, ANameWithALineEndStaysOnItsLine) {
  const Error error{Code::corrupt, "model.gguf", "tensor \"a\nb\"", {"  second\nline"}};
  EXPECT_EQ(error.line(), "model.gguf: tensor \"a\\x0ab\"\n  second\\x0aline");
}

TEST(ResultDeathTest, UncheckedErrorAbortsWithItsLine) {
  EXPECT_DEATH((void)*half(1), "half: odd");
}

}  // namespace
}  // namespace tierd
