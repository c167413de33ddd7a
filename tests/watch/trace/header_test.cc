#include "core/watch/trace/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/watch/trace/trace_world.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(TraceHeader, ComesBackAsItWas) {
  for (const TraceHeader& header : {small_header(), header_of_several_editions()}) {
    const std::string text = header_json(header);
    const auto read = parse_header(text, "run.trace");
    ASSERT_TRUE(read.ok()) << read.error().line();
    EXPECT_EQ(header_json(*read), text);
    ASSERT_EQ(read->sites.editions.size(), header.sites.editions.size());
    for (EditionId e = 0; e < header.sites.editions.size(); ++e) {
      EXPECT_EQ(read->sites.editions[e].owner, header.sites.editions[e].owner);
      EXPECT_EQ(read->sites.editions[e].n, header.sites.editions[e].n);
      EXPECT_EQ(read->sites.editions[e].bytes, header.sites.editions[e].bytes);
    }
    EXPECT_EQ(read->sites[0].editions, header.sites[0].editions);
    EXPECT_EQ(read->seed, UINT64_MAX);
    const auto* a = std::get_if<int64_t>(&read->cache.settings[0].value);
    ASSERT_NE(a, nullptr);
    EXPECT_EQ(*a, -7);
  }
}

// Each field once missing and once of another type gives an error that names it, or a harmless default.
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
      EXPECT_THAT(read.error().line(), HasSubstr("run.trace: header: "));
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
      {"/sites", json::array(), "sites"},
      {"/sites/1/editions/0", 9, "editions"},  // there is no edition 9
      {"/sites/1/editions", json::array(), "editions"},
      {"/sites/1/editions", json(std::vector<uint32_t>(17, 0)), "editions"},
      {"/sites/1/input_of", json::array(), "input_of"},
      {"/sites/1/input_of", json::array({{1, 0, 9}}), "input_of"},             // there is no second unit
      {"/sites/1/input_of", json::array({{0, 0, 1}, {0, 1, 1}}), "input_of"},  // of a segment before
      {"/sites/1/output_to", json::array({{0, 1u << 30, 1}}), "output_to"},
      {"/sites/0/neurons", 4, "editions"},  // the site that shares it has another shape
      {"/sites/2/neurons", 4, "bytes"},
      {"/editions/1/owner", 3, "owner"},
      {"/editions/0/slot_bytes", 100, "slot_bytes"},
      {"/editions/0/slot_bytes", 0, "slot_bytes"},
      {"/editions/0/bytes", json::array({{5, 4000}, {1, 1}}), "bytes"},
      {"/editions/0/bytes", json::array({{4, 4000}}), "bytes"},
      {"/editions/0/bytes", json::array({{-1, 4000}}), "bytes"},
      {"/editions/0/first_extent", UINT32_MAX, "first_extent"},
      {"/editions/0/stride", 0, "stride"},
      {"/editions/0/stride", 4097, "stride"},
      {"/editions", json::array(), "slots"},  // there are more slots than editions
      {"/memories/0/slots/0", 6, "slots"},
      {"/memories/0/slots", json::array({1}), "slots"},
      {"/memories/0/slots", json::array({1, 2, 3}), "slots"},
      {"/memories/0/reserved/0", 6, "reserved"},
      {"/memories/0/reserved", json::array({1}), "reserved"},
      {"/memories/0/reserved", json::array({1, 2, 3}), "reserved"},
      {"/sites/1/editions", json::array({0, 0}), "editions"},
      {"/sites/1/run", 0, "run"},
      {"/max_units", 4, "max_units"},
      {"/max_units", 60'000'000, "max_units"},
      {"/max_messages", 1, "max_messages"},
      {"/memories/0/block_bytes", 2048, "block_bytes"},
      {"/sites/1/run", 64, "block_bytes"},  // a run is larger than a block
      {"/memories/0/staging_blocks", 1, "staging_blocks"},
      {"/memories/0/agent", 0, "agent"},
      {"/memories", json::array(), "memories"},
      {"/links/0/from", 1, "from"},
      {"/links/0/to", 0, "to"},
      {"/links/0/to", 2, "to"},
      {"/links/0/agent", 3, "agent"},
      {"/links", json::array(), "links"},
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
    EXPECT_THAT(read.error().line(), HasSubstr(std::string("header: ") + c.named + ":"));
  }
  for (const char* text : {"", "[]", "{", "7", "{}"})
    EXPECT_FALSE(parse_header(text, "run.trace").ok()) << text;
}

// Each site and each edition alone is valid.
TEST(TraceHeader, SitesThatAreTooMuchTogetherAreRefused) {
  const auto line = [](uint32_t n, const std::function<void(TraceHeader&)>& change) {
    TraceHeader header = small_header();
    for (Site& site : header.sites.all) site.n = n;
    for (Edition& edition : header.sites.editions) {
      edition.n = n;
      edition.bytes.assign(n, 4000);
    }
    header.slots = {{1, 1}};
    header.scheduler.topology.memory(1).reserved = {1, 1};
    header.max_units = n;
    change(header);
    const auto read = parse_header(header_json(header), "run.trace");
    return read.ok() ? std::string() : read.error().line();
  };
  EXPECT_EQ(line(2, [](TraceHeader&) {}), "");
  EXPECT_THAT(line(1, [](TraceHeader&) {}), HasSubstr("max_units: is less than there are editions"));
  EXPECT_THAT(line(50'000, [](TraceHeader& h) { h.sites.editions[1].stride = 4096; }),
              HasSubstr("stride: leads too far"));
  EXPECT_THAT(line(200'000, [](TraceHeader& h) { h.scheduler.max_rows = UINT16_MAX; }),
              HasSubstr("max_rows: is too large"));
}

// Editions of one site are counted before their lists are allocated.
TEST(TraceHeader, EditionsThatAreTooMuchTogetherAreRefused) {
  constexpr uint32_t kHalfOfAllAndOne = 500'000;
  json header = json::parse(header_json(small_header()));
  json& site = header["sites"][1];
  json edition = header["editions"][0];
  site["neurons"] = kHalfOfAllAndOne;
  edition["owner"] = 0;
  edition["bytes"] = json::array({{kHalfOfAllAndOne, 4000}});
  header["sites"] = json::array({site});
  header["editions"] = json::array({edition, edition});
  const auto read = parse_header(header.dump(), "run.trace");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().line(), HasSubstr("editions: have too many neurons"));
}

// Tables are allocated by the header's claims, so a short header must not claim much.
TEST(TraceHeader, NeuronsAreBelievedByTheSizeOfTheHeader) {
  const auto claim = [](uint32_t neurons, size_t more_bytes) {
    json header = json::parse(header_json(small_header()));
    header["facts"]["more"] = std::string(more_bytes, 'x');
    header["sites"][1]["neurons"] = neurons;
    header["editions"][0]["bytes"] = json::array({{neurons, 4000}});
    header["max_units"] = neurons;
    header["max_messages"] = 2;
    const auto read = parse_header(header.dump(), "run.trace");
    return read.ok() ? std::string() : read.error().line();
  };
  EXPECT_EQ(claim(1u << 18, 0), "");
  EXPECT_EQ(claim(1u << 20, 4096), "");
  EXPECT_THAT(claim((1u << 26) - 100, 0),
              testing::MatchesRegex("run.trace: header: neurons: are 67108764 of site 1, [0-9]+ more are "
                                    "believed of a header of this size"));
}

}  // namespace
}  // namespace tierd
