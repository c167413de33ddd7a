// 500 tokenizer.json files, drawn over the fields that the reader knows, and the ids of the tokenizers
// package (tests/golden/make_tokenizer_fields.py). Each field is obeyed, or the file is refused with the
// field's name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/formats/tokenizer/tokenizer_files.h"
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
  for (const std::string& text : texts) read.ids.push_back((*tokenizer)->encode(text, true, true));
  return read;
}

TEST(TokenizerFields, AreObeyedOrRefusedByName) {
  const json golden = json::parse(read_text(TIERD_SOURCE_DIR "/tests/golden/tokenizer/fields.json"));
  const auto texts = golden.at("texts").get<std::vector<std::string>>();
  size_t obeyed = 0;
  for (size_t i = 0; i < golden.at("cases").size(); ++i) {
    const json& one = golden.at("cases")[i];
    json changes;
    for (const auto& [pointer, number] : one.at("changes").items())
      changes[pointer] = golden.at("values").at(number.get<size_t>());
    if (one.contains("added")) changes["/added_tokens"] = added_tokens(one["added"]);
    json root = golden.at("bases").at(one.at("base").get<std::string>());
    for (const auto& [pointer, value] : changes.items()) root[json::json_pointer(pointer)] = value;
    const Read got = read(std::to_string(i) + ".json", root, texts);
    if (!got.refused.empty()) {
      EXPECT_TRUE(names_a_change(got.refused, changes)) << i << changes << got.refused;
      continue;
    }
    // Truncation and a trailing EOS are ignored with a printed line, because texts are continued.
    if (one.at("ids").is_null() || !got.said.empty()) continue;
    ++obeyed;
    EXPECT_EQ(got.ids, one.at("ids").get<std::vector<std::vector<uint32_t>>>())
        << i << one.at("base") << changes;
  }
  EXPECT_GT(obeyed, 250u);
}

}  // namespace
}  // namespace tierd
