#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/json_fields.h"

namespace tierd {
namespace {

std::string said(const std::string& text, uint64_t most_values = UINT64_MAX) {
  const auto parsed = parse_json(text, "file", most_values);
  return parsed.ok() ? "ok" : parsed.error().line();
}

// Checked without parsing, which would take time quadratic in a number's digits and 16 bytes a value.
TEST(JsonBounds, WhatIsTooDeepTooMuchOrTooLongIsRefused) {
  EXPECT_EQ(said(std::string(64, '[') + std::string(64, ']')), "ok");
  EXPECT_EQ(said(std::string(65, '[')), "file: JSON nested deeper than 64 levels");
  EXPECT_EQ(said("[1, {\"a\": 2}, 3]", 5), "ok");
  EXPECT_EQ(said("[1, {\"a\": 2}, 3]", 4), "file: JSON of more than 4 values");
  EXPECT_EQ(said("[\"1,2,3,[{\", 2]", 3), "ok");
  EXPECT_EQ(said("[0." + std::string(1022, '1') + "]"), "ok");
  EXPECT_EQ(said("[" + std::string(1025, '1') + "]"), "file: a number of more than 1024 digits");
  EXPECT_EQ(said("\"" + std::string(5000, '1') + "\""), "ok");
}

}  // namespace
}  // namespace tierd
