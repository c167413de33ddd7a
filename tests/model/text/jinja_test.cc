#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/model/text/jinja/template.h"

namespace tierd::jinja {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::StartsWith;

std::string shown_of(const Error& error) {
  return error.origin + ": " + error.detail;
}

std::string rendered(const std::string& source, const ordered_json& variables = ordered_json::object(),
                     const Rendering& rendering = {}) {
  const auto made = Template::parse(source);
  if (!made.ok()) return shown_of(made.error());
  const auto text = made->render(variables, rendering);
  return text.ok() ? *text : shown_of(text.error());
}

// The expected texts are jinja2's. All others are compared by tests/golden/make_template_golden.py.
TEST(Jinja, WhiteSpaceGoesAroundTags) {
  EXPECT_EQ(rendered("a\n  {% if true %}\nb\n  {% endif %}\nc\n"), "a\nb\nc");
  EXPECT_EQ(rendered("a {%- if true -%} \n b {%+ endif %}\nc"), "ab c");
  EXPECT_EQ(rendered("a\n  {%+ if true %}b{% endif %}"), "a\n  b");
  EXPECT_EQ(rendered("  {# note #}\nx {{ 1 }}\n\ny"), "x 1\n\ny");
  EXPECT_EQ(rendered("{% raw %} {{ x }} {% endraw %}\n{{- 2 -}}  \n"), " {{ x }} 2");
  EXPECT_EQ(rendered("a\r\nb\rc"), "a\nb\nc");
  EXPECT_EQ(rendered("{{ {'a': {'b': 1}}['a']['b'] }}{{ '}}' }}{{ \"%}\" }}"), "1}}%}");
}

TEST(Jinja, NumbersArePythons) {
  EXPECT_EQ(rendered("{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 62 }} {{ 2 ** -1 }} {{ 6 / 3 }}"),
            "-4 2 -2 4611686018427387904 0.5 2.0");
  EXPECT_EQ(rendered("{{ 1e16 }} {{ 123456789012345.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 1_000 }}"),
            "1e+16 123456789012345.0 0.0001 1e-05 -0.0 1000");
  EXPECT_EQ(rendered("{{ true + 1 }} {{ 1 == true }} {{ 1 == 1.0 }} {{ 'a' == 1 }}"), "2 True True False");
  for (const char* beyond : {"{{ 9223372036854775807 + 1 }}", "{{ 2 ** 63 }}",
                             "{{ 3037000500 * 3037000500 }}", "{{ -(-9223372036854775807 - 1) }}"})
    EXPECT_EQ(rendered(beyond), "line 1: an integer is beyond 64 bits");
  EXPECT_EQ(rendered("{{ 9223372036854775808 }}"), "line 1: the number 9223372036854775808 is too large");
  EXPECT_EQ(rendered("{{ x }}", {{"x", 9223372036854775808u}}),
            ": the integer 9223372036854775808 is beyond 64 bits with a sign");
  EXPECT_EQ(rendered("{{ 1 / 0 }}"), "line 1: a division by zero");
}

TEST(Jinja, TextsAreIndexedByCharacter) {
  EXPECT_EQ(rendered("{{ x[1] }}{{ x[-1] }}{{ x[::-1] }}{{ x | length }}{{ x[1:3] }}", {{"x", "aé日𝄞"}}),
            "é𝄞𝄞日éa4é日");
  EXPECT_EQ(rendered("{{ x.strip() }}|", {{"x", "\u00a0\u3000 é \u2028"}}), "é|");
  EXPECT_EQ(rendered("{{ x.upper() }} {{ x.title() }}", {{"x", "éa öb"}}), "ÉA ÖB Éa Öb");
  EXPECT_EQ(rendered("{{ x.upper() }}", {{"x", "straße"}}), "line 1: the other case of 'ß' is not supported");
  EXPECT_EQ(rendered("{{ [x] }}", {{"x", "it's \n\u200b\x01 é"}}), "[\"it's \\n\\u200b\\x01 é\"]");
  // A byte that is not UTF-8 is a character, and is written as it was.
  EXPECT_EQ(rendered("{{ x[1:] | trim }}{{ x | length }}", {{"x", "a\xff "}}),
            "\xff"
            "3");
}

TEST(Jinja, JsonIsPythons) {
  const ordered_json value = {
      {"b", {1, 2.5, nullptr, true}}, {"a", "\"<é>\" \n\x01"}, {"none", ordered_json::array()}};
  EXPECT_EQ(rendered("{{ x | tojson }}", {{"x", value}}),
            "{\"b\": [1, 2.5, null, true], \"a\": \"\\\"<é>\\\" \\n\\u0001\", \"none\": []}");
  EXPECT_EQ(rendered("{{ x | tojson(ensure_ascii=true) }}", {{"x", "é𝄞"}}), "\"\\u00e9\\ud834\\udd1e\"");
  EXPECT_EQ(rendered("{{ {'b': [1], 'a': {}} | tojson(indent=2, sort_keys=true) }}"),
            "{\n  \"a\": {},\n  \"b\": [\n    1\n  ]\n}");
  EXPECT_EQ(rendered("{{ {1: none} | tojson(separators=(',', ':')) }}"), "{\"1\":null}");
  EXPECT_THAT(rendered("{{ missing | tojson }}"), HasSubstr("tojson of an undefined value, expected a list"));
}

TEST(Jinja, DatesAreThoseOfTheRendering) {
  Rendering rendering;
  rendering.now.tm_year = 126, rendering.now.tm_mon = 0, rendering.now.tm_mday = 5, rendering.now.tm_wday = 1;
  const auto date = [&](const std::string& format) {
    return rendered("{{ strftime_now('" + format + "') }}", ordered_json::object(), rendering);
  };
  EXPECT_EQ(date("%d %b %Y %H:%M:%S"), "05 Jan 2026 00:00:00");
  EXPECT_EQ(date("%A %-d. %B, %y %%"), "Monday 5. January, 26 %");
  EXPECT_EQ(date("%Q"), "line 1: the directive '%Q' of a date is not supported");
}

TEST(Jinja, ScopesAreThoseOfBlocks) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}"),
            "15151");
  EXPECT_EQ(rendered("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
  EXPECT_EQ(rendered("{% macro f(a, b=a) %}{{ a }}{{ b }}{{ x }}{% endmacro %}{% set x = 9 %}{{ f(1) }}{{ "
                     "f(b=2, a=3) }}"),
            "119329");
  EXPECT_EQ(rendered("{% set ns = namespace(n=0) %}{% for i in range(3) %}{% set ns.n = ns.n + i %}{% endfor "
                     "%}{{ ns.n }}"),
            "3");
  EXPECT_EQ(rendered("{% macro f() %}x{% endmacro %}{{ f(1) }}"),
            "line 1: the macro 'f' has 0 parameters, found 1 more arguments");
  EXPECT_EQ(rendered("{% set ns = namespace() %}{% set ns.me = [ns] %}"),
            "line 1: a list contains a macro, a namespace or a loop");
}

TEST(Jinja, ErrorsNameTheLineAndWhatWasExpected) {
  EXPECT_EQ(rendered("\n\n{{ a.b.c }}"), "line 3: 'a' is undefined");
  EXPECT_EQ(rendered("{% if x %}\n{% endfor %}"),
            "line 2: found 'endfor', expected a tag: if, for, set, macro, call, filter, with, generation, "
            "break or continue");
  EXPECT_EQ(rendered("{% if x %}\nx"), "line 2: found the end of the template, expected {% endif %}");
  EXPECT_EQ(rendered("{{ (1, 2] }}"), "line 1: found ']', expected ')'");
  EXPECT_EQ(rendered("{{ 'a }}"), "line 1: a text has no end, expected '");
  EXPECT_EQ(rendered("{{ 1 + }}"), "line 1: found }}, expected an expression");
  EXPECT_EQ(rendered("{{ 'a' + 1 }}"), "line 1: '+' is not defined for a text and an integer");
  EXPECT_EQ(rendered("{{ raise_exception('no ' ~ 'tools') }}"), "line 1: refused by the template: no tools");
  EXPECT_EQ(rendered("{% include 'x' %}"), "line 1: the tag 'include' is not supported");
  EXPECT_EQ(rendered("{{ x | frobnicate }}"), "line 1: the filter 'frobnicate' is not supported");
  EXPECT_EQ(rendered("{% if false %}{{ x | frobnicate }}{% endif %}"), "");
  EXPECT_EQ(rendered("{% break %}"), "line 1: 'break' is outside a loop");
}

// Methods that change their object, and private names, do not exist.
TEST(Jinja, NothingIsChangedAndNothingLeadsOut) {
  EXPECT_EQ(rendered("{{ x.append(1) }}", {{"x", {1}}}), "line 1: 'append' is undefined");
  EXPECT_EQ(rendered("{{ x.pop('a') }}", {{"x", {{"a", 1}}}}), "line 1: 'pop' is undefined");
  EXPECT_EQ(
      rendered(
          "{{ x.__class__ is defined }}{{ ''['__class__'] is defined }}{{ range.__globals__ is defined }}",
          {{"x", {{"__class__", 1}}}}),
      "FalseFalseFalse");
  EXPECT_EQ(rendered("{{ self }}{{ cycler }}{{ request }}{{ config }}"), "");
}

TEST(Jinja, StepsDepthAndBytesAreBounded) {
  const auto bounded = [](const std::string& source) {
    return rendered(source, ordered_json::object(), {.most_steps = 1'000'000, .most_bytes = 64 << 20});
  };
  EXPECT_THAT(bounded("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
              HasSubstr("needs more steps"));
  EXPECT_THAT(
      bounded(
          "{% set ns = namespace(x='a') %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"),
      HasSubstr("line 1: "));
  EXPECT_THAT(
      bounded(
          "{% set ns = namespace(x=[]) %}{% for i in range(64) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}"),
      HasSubstr("a list is larger than 32 MiB"));
  EXPECT_THAT(
      bounded("{% set ns = namespace(x=1) %}{% for i in range(500) %}{% set ns.x = [ns.x] %}{% endfor %}"),
      HasSubstr("nested deeper than 100 levels"));
  EXPECT_THAT(bounded("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("nested deeper than 500 levels"));
  EXPECT_THAT(bounded("{{ 'x' * 99999999 }}"), HasSubstr("larger than 32 MiB"));
  EXPECT_THAT(bounded("{{ range(100001) }}"), HasSubstr("a range has more than 100000 numbers"));
  EXPECT_THAT(bounded("{% set ns = namespace(x=[]) %}{% for i in range(64) %}{% set ns.x = ns.x + ['x' * "
                      "4000000] %}{% endfor %}"),
              StartsWith("line 1: "));
  const auto repeated = [](const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
  };
  for (const char* open :
       {"(", "[", "-", "not ", "x if x else ", "x[", "f(", "{1:", "1+", "x|default(", "x is in("})
    EXPECT_THAT(bounded("{{ " + repeated(open, 50'000)), StartsWith("line 1: ")) << open;
  EXPECT_THAT(bounded(repeated("{% if x %}", 50'000)), HasSubstr("blocks are nested deeper than 100 levels"));
  EXPECT_THAT(bounded(repeated("{{ 1 }}", 200'000)), HasSubstr("the template has 1400000 bytes"));
}

}  // namespace
}  // namespace tierd::jinja
