// Compares with the ids that the sentencepiece and tokenizers libraries gave for the tiny tokenizers of
// tests/golden/make_tokenizer_golden.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/formats/tokenizer/tokenizer_files.h"
#include "core/model/text/tokenizer.h"
#include "tests/model/text/files.h"

namespace tierd {
namespace {

TEST(Golden, IdsEqualThoseOfTheReferenceLibraries) {
  const auto golden = nlohmann::json::parse(read_text(kGoldenFolder + "golden.json"));
  const auto texts = golden.at("texts").get<std::vector<std::string>>();
  ASSERT_GT(golden.at("cases").size(), 5u);
  for (const auto& c : golden.at("cases")) {
    const std::string file = c.at("file").get<std::string>();
    const auto vocab = read_tokenizer_file(kGoldenFolder + file, 0);
    ASSERT_TRUE(vocab.ok()) << vocab.error().line();
    const auto tokenizer = make_tokenizer(*vocab, file);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().line();
    for (size_t i = 0; i < texts.size(); ++i) {
      if (c.at("ids")[i].is_null()) continue;
      EXPECT_EQ((*tokenizer)->encode(texts[i], false, c.value("parse_special", false)),
                c.at("ids")[i].get<std::vector<uint32_t>>())
          << file << ": " << texts[i];
    }
  }
}

TEST(Golden, BosComesFromTheFile) {
  const auto llama = read_tokenizer_file(kGoldenFolder + "llama.json", 0);
  ASSERT_TRUE(llama.ok()) << llama.error().line();
  EXPECT_EQ(llama->kind, VocabKind::sentencepiece_bpe);
  EXPECT_EQ(llama->pieces[llama->bos], "<s>");
  EXPECT_TRUE(llama->add_bos);
  EXPECT_TRUE(llama->add_space_prefix);
  const auto gpt2 = read_tokenizer_file(kGoldenFolder + "gpt2.json", 0);
  ASSERT_TRUE(gpt2.ok()) << gpt2.error().line();
  EXPECT_EQ(gpt2->kind, VocabKind::byte_bpe);
  EXPECT_EQ(gpt2->bos, kNoToken);
  EXPECT_FALSE(gpt2->add_bos);
  const auto no_prefix = read_tokenizer_file(kGoldenFolder + "no_prefix.model", 0);
  ASSERT_TRUE(no_prefix.ok()) << no_prefix.error().line();
  EXPECT_FALSE(no_prefix->add_space_prefix);
  EXPECT_EQ(no_prefix->bos, 1u);
}

}  // namespace
}  // namespace tierd
