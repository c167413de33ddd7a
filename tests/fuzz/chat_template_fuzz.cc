// A chat template in Jinja, and the text of a chat that it writes.
#include <nlohmann/json.hpp>

#include "core/base/check.h"
#include "core/model/text/jinja/template.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {
namespace {

const nlohmann::ordered_json& variables() {
  static const auto all = nlohmann::ordered_json::parse(R"({
    "messages": [
      {"role": "system", "content": "Be brief."},
      {"role": "user", "content": " Hi <|im_end|> é\n"},
      {"role": "assistant", "content": "", "reasoning_content": "x", "tool_calls": [
        {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": {"a": [1, 2.5, null]}}}]},
      {"role": "tool", "content": "{\"b\": true}", "name": "f", "tool_call_id": "abcdefghi"},
      {"role": "assistant", "content": "<think>y</think>\n\nz"}],
    "tools": [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {
      "type": "object", "properties": {"a": {"type": ["array", "null"], "items": {"type": "number"}}},
      "required": ["a"]}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})");
  return all;
}

}  // namespace

void fuzz(std::string_view input) {
  const auto made = jinja::Template::parse(input);
  if (!made.ok()) return expect_one_line(made.error(), "line ");
  const auto text = made->render(variables(), {.most_steps = 200'000, .most_bytes = uint64_t{16} << 20});
  if (!text.ok()) return expect_one_line(text.error(), "line ");
  // The text is the same each time.
  TIERD_CHECK(*made->render(variables(), {.most_steps = 200'000, .most_bytes = uint64_t{16} << 20}) == *text);
}

}  // namespace tierd
