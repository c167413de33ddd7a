// tokenizer.json files drawn over all fields, and what the tokenizers package makes of them
// (tests/golden/make_tokenizer_fields.py). Each field is obeyed, or the file is refused with the field's
// name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/model/text/text_stream.h"
#include "core/model/text/tokenizer.h"
#include "tests/model/text/files.h"

namespace tierd {
namespace {

using nlohmann::json;

// Returns the words by which a message may name a changed field: its name, and the names inside it.
std::vector<std::string> names_of(const json& changes) {
  std::vector<std::string> names;
  for (const auto& [pointer, value] : changes.items()) {
    names.push_back(pointer.substr(pointer.rfind('/') + 1));
    const json leaves = value.flatten();
    for (const auto& [inner, leaf] : leaves.items()) {
      names.push_back(inner.substr(inner.rfind('/') + 1));
      if (leaf.is_string()) names.push_back(leaf.get<std::string>());
    }
  }
  return names;
}

bool names_a_change(const std::string& line, const json& changes) {
  const auto names = names_of(changes);
  return std::ranges::any_of(
      names, [&](const std::string& name) { return !name.empty() && line.find(name) != std::string::npos; });
}

// Returns added tokens as in the file, from [id, content, letters of the flags that are true].
json added_tokens(const json& list) {
  json tokens = json::array();
  for (const json& one : list) {
    const auto flags = one.at(2).get<std::string>();
    const auto has = [&](char letter) { return flags.find(letter) != std::string::npos; };
    tokens.push_back({{"id", one.at(0)},
                      {"content", one.at(1)},
                      {"special", has('s')},
                      {"normalized", has('n')},
                      {"lstrip", has('l')},
                      {"rstrip", has('r')},
                      {"single_word", has('w')}});
  }
  return tokens;
}

struct Read {
  std::vector<std::vector<uint32_t>> ids;
  std::vector<std::array<std::string, 2>> texts;  // of the ids: with special tokens, and without
  std::string refused;
  std::string said;
};

// `name`: the file's name, different in each call, because a warning about a file is printed once.
Read read(const std::string& name, const json& root, const std::vector<std::string>& texts) {
  Read read;
  const std::string path = write_text(name, root.dump());
  testing::internal::CaptureStderr();
  const auto vocab = read_tokenizer_json(path);
  const auto tokenizer =
      vocab.ok() ? make_tokenizer(*vocab, path) : Result<std::unique_ptr<Tokenizer>>(vocab.error());
  read.said = testing::internal::GetCapturedStderr();
  if (!tokenizer.ok()) {
    read.refused = tokenizer.error().detail;
    return read;
  }
  for (const std::string& text : texts) {
    read.ids.push_back((*tokenizer)->encode(text, true, true));
    read.texts.push_back({well_formed((*tokenizer)->decode(read.ids.back(), true)),
                          well_formed((*tokenizer)->decode(read.ids.back(), false))});
  }
  return read;
}

// The file of cases, and the counts of what became of them.
struct Cases {
  json golden;
  size_t equal = 0;
  size_t refused = 0;
  size_t refused_by_the_package = 0;
  size_t with_a_line = 0;  // a field is ignored, and the line says so

  json changes_of(const json& one) const {
    json changes;
    for (const auto& [pointer, number] : one.at("changes").items())
      changes[pointer] = golden.at("values").at(number.get<size_t>());
    if (one.contains("added")) changes["/added_tokens"] = added_tokens(one["added"]);
    return changes;
  }
};

bool has_replacement(std::string_view text) {
  return text.find("\xef\xbf\xbd") != std::string_view::npos;
}

// Compares the texts of all ids. The package replaces each byte of a run that is no text; tierd replaces only
// the bytes of it that are no character.
void compare_texts(const Cases& cases, const json& one, const Read& got, const std::string& which) {
  for (size_t i = 0; i < got.texts.size(); ++i) {
    for (size_t j = 0; j < 2; ++j) {
      if (one.at("texts")[i][j].is_null()) continue;
      const auto want = cases.golden.at("strings").at(one.at("texts")[i][j].get<size_t>()).get<std::string>();
      if (has_replacement(want)) continue;
      EXPECT_EQ(got.texts[i][j], want) << which << " text " << i;
    }
  }
}

TEST(TokenizerFields, AreObeyedOrRefusedByName) {
  const char* const other = std::getenv("TIERD_TOKENIZER_CASES");
  Cases cases{json::parse(
      read_text(other != nullptr ? other : TIERD_SOURCE_DIR "/tests/golden/tokenizer/fields.json"))};
  const auto texts = cases.golden.at("texts").get<std::vector<std::string>>();
  const size_t count = cases.golden.at("cases").size();
  for (size_t i = 0; i < count; ++i) {
    const json& one = cases.golden.at("cases")[i];
    const json changes = cases.changes_of(one);
    json root = cases.golden.at("bases").at(one.at("base").get<std::string>());
    for (const auto& [pointer, value] : changes.items()) root[json::json_pointer(pointer)] = value;
    const Read got = read(std::to_string(i) + ".json", root, texts);
    const std::string which = std::to_string(i) + " " + one.at("base").dump() + changes.dump(-1, ' ', false);
    if (!got.refused.empty()) {
      EXPECT_TRUE(names_a_change(got.refused, changes)) << which << got.refused;
      ++cases.refused;
    } else if (one.at("ids").is_null()) {
      ++cases.refused_by_the_package;
    } else if (!got.said.empty()) {
      ++cases.with_a_line;
    } else {
      EXPECT_EQ(got.ids, one.at("ids").get<std::vector<std::vector<uint32_t>>>()) << which;
      compare_texts(cases, one, got, which);
      ++cases.equal;
    }
  }
  std::printf(
      "%zu tokenizers: %zu compared, %zu refused by name, %zu refused by the package, %zu with a line\n",
      count, cases.equal, cases.refused, cases.refused_by_the_package, cases.with_a_line);
  EXPECT_GT(cases.equal, count / 3);
}

}  // namespace
}  // namespace tierd
