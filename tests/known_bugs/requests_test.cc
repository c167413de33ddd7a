// Requests of the kinds that have brought servers down, or made them answer what was not asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/store/json_fields.h"
#include "tests/store/memory_source.h"
#include "tools/tierd/api/api_error.h"
#include "tools/tierd/api/completion_request.h"

namespace tierd {
namespace {

using nlohmann::json;
using testing::HasSubstr;

unsigned status_of(const json& fields) {
  static const auto tokenizer = make_tokenizer(small_vocab(300), "test");
  json body = {{"prompt", "a"}};
  body.update(fields);
  const auto request = read_completion(body, **tokenizer, {}, nullptr);
  if (request.ok()) return 200;
  EXPECT_THAT(request.error().line(), HasSubstr(fields.begin().key()));
  return api_error(request.error()).status;
}

// A count below zero moved the KV cache to the wrong side.
TEST(KnownBugs, CountsBelowZero_CVE_2026_21869) {
  for (const char* field : {"n_discard", "n_keep"}) EXPECT_NE(status_of({{field, -5}}), 500u) << field;
  for (const char* field : {"n", "logprobs", "top_k", "max_tokens", "repeat_last_n"})
    EXPECT_EQ(status_of({{field, -5}}), 400u) << field;
  for (const json& token : {json(-1), json(1 << 30), json(0.5)})
    EXPECT_EQ(status_of({{"prompt", {token}}}), 400u) << token;
  EXPECT_EQ(status_of({{"max_tokens", 1e300}}), 400u);
}

TEST(KnownBugs, NestedBodies_26600_27434_25308) {
  for (const std::string open : {"[", "{\"a\":", "[[{\"b\":"}) {
    std::string text = "{\"prompt\": ";
    for (int i = 0; i < 100'000; ++i) text += open;
    const auto body = parse_json(text, kRequest);
    ASSERT_FALSE(body.ok());
    EXPECT_EQ(api_error(body.error()).status, 400u);
  }
}

// A grammar that cannot be kept must not be left out: the answer would be trusted to keep it.
TEST(KnownBugs, GrammarsThatFailOpen_19051) {
  for (const char* field : {"grammar", "json_schema", "guided_json", "guided_regex"})
    EXPECT_EQ(status_of({{field, "root ::= x"}}), 501u) << field;
  EXPECT_EQ(status_of({{"response_format", {{"type", "json_object"}}}}), 501u);
  EXPECT_EQ(status_of({{"response_format", {{"type", "text"}}}}), 200u);
}

}  // namespace
}  // namespace tierd
