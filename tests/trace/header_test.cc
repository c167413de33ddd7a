#include "core/trace/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/trace/trace_world.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(TraceHeader, ComesBackAsItWas) {
  const std::string text = header_json(small_header());
  const auto read = parse_header(text, "run.trace");
  ASSERT_TRUE(read.ok()) << read.error().line();
  EXPECT_EQ(header_json(*read), text);
  EXPECT_EQ(read->sites[1].bytes, small_header().sites[1].bytes);
  EXPECT_EQ(read->seed, UINT64_MAX);
  const auto* a = std::get_if<int64_t>(&read->cache.settings[0].value);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(*a, -7);
}

// Each field once missing and once of another type: an error that names it, or a harmless default.
TEST(TraceHeader, EveryFieldIsChecked) {
  const json whole = json::parse(header_json(small_header()));
  int refused = 0;
  const json flat = whole.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (pointer.starts_with("/facts") || pointer.find("/settings") != std::string::npos) continue;
    for (const json& wrong :
         {json(), json("wrong"), json(-1), json(1e300), json::array({1}), json::object()}) {
      if (wrong.type() == value.type()) continue;
      json changed = whole;
      changed[json::json_pointer(pointer)] = wrong;
      const auto read = parse_header(changed.dump(), "run.trace");
      if (read.ok()) {
        ADD_FAILURE() << pointer << " as " << wrong;
        continue;
      }
      EXPECT_EQ(read.code(), Code::corrupt);
      EXPECT_THAT(read.error().line(), HasSubstr("run.trace: header: '"));
      ++refused;
    }
  }
  EXPECT_GT(refused, 200);
}

TEST(TraceHeader, WhatTheKernelTakesForGrantedIsChecked) {
  struct Case {
    const char* pointer;
    json value;
    const char* named;
  };
  const Case cases[] = {
      {"/sites/1/domain", 9, "domain"},
      {"/sites/1/domain", 0, "domain"},  // an alias of an alias
      {"/sites/2/neurons", 4, "bytes"},
      {"/sites/1/slot_bytes", 100, "slot_bytes"},
      {"/sites/1/bytes", json::array({{5, 4000}, {1, 1}}), "bytes"},
      {"/sites/1/bytes", json::array({{4, 4000}}), "bytes"},
      {"/sites/1/bytes", json::array({{-1, 4000}}), "bytes"},
      {"/sites/1/stride", 0, "stride"},
      {"/sites/1/stride", 4097, "stride"},
      {"/units/0/slots/1", 6, "slots"},
      {"/units/0/slots/0", 1, "slots"},  // of an alias
      {"/units/0/slots", json::array({1, 2}), "slots"},
      {"/units/0/reserved/1", 6, "reserved"},
      {"/units/0/reserved/0", 1, "reserved"},  // of an alias
      {"/units/0/reserved", json::array({1, 2}), "reserved"},
      {"/sites/1/run", 0, "run"},
      {"/max_units", 4, "max_units"},
      {"/max_units", 60'000'000, "max_units"},
      {"/max_messages", 1, "max_messages"},
      {"/units/0/block_bytes", 2048, "block_bytes"},
      {"/sites/1/run", 64, "block_bytes"},  // a run is larger than a block
      {"/units/0/staging_blocks", 1, "staging_blocks"},
      {"/flash_agent", 3, "flash_agent"},
      {"/flash_agent", 0, "flash_agent"},
      {"/units/0/agent", 0, "agent"},
      {"/units/0/agent", 3, "agent"},
      {"/units", json::array(), "units"},
      {"/agents/0/credits", 0, "credits"},
      {"/cache/settings/a", json::array(), "cache"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.pointer) + " " + c.value.dump());
    json changed = json::parse(header_json(small_header()));
    changed[json::json_pointer(c.pointer)] = c.value;
    const auto read = parse_header(changed.dump(), "run.trace");
    ASSERT_FALSE(read.ok());
    EXPECT_THAT(read.error().line(), HasSubstr(std::string("header: '") + c.named + "'"));
  }
  for (const char* text : {"", "[]", "{", "7", "{}"})
    EXPECT_FALSE(parse_header(text, "run.trace").ok()) << text;
}

}  // namespace
}  // namespace tierd
