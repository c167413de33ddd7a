#include "tools/lab/planted/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/base/file.h"
#include "core/model/text/tokenizer.h"
#include "tests/base/temp_folder.h"
#include "tests/lab/planted/small_planted.h"
#include "tools/lab/planted/vocab.h"

namespace tierd {
namespace {

using testing::HasSubstr;

TEST(PlantedVocab, EveryIdHasATextOfItsOwn) {
  const Vocab vocab = planted_vocab(50'272);
  EXPECT_EQ(vocab.pieces.size(), 50'272u);
  EXPECT_EQ(vocab.types.size(), 50'272u);
  EXPECT_EQ(vocab.scores.size(), 50'272u);
  EXPECT_EQ(std::set(vocab.pieces.begin(), vocab.pieces.end()).size(), 50'272u);
  const auto tokenizer = make_tokenizer(vocab, "planted");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().line();
  const std::vector<uint32_t> ids = {259, 50'271, 300, 300, 40'000, 259};
  EXPECT_EQ((*tokenizer)->encode(planted_text(vocab, ids), true, true), ids);
  EXPECT_EQ((*tokenizer)->decode(ids), planted_text(vocab, ids));
}

TEST(PlantedPrompt, RunsThroughTheIdsFromDifferentStarts) {
  const auto source = make_planted(small_planted_shape());
  const auto prompts = planted_prompts(source->config(), 1, 4, 64);
  ASSERT_TRUE(prompts.ok()) << prompts.error().line();
  ASSERT_EQ(prompts->size(), 4u);
  uint32_t before = kFirstPlantedWord;
  for (const std::vector<uint32_t>& ids : *prompts) {
    ASSERT_EQ(ids.size(), 64u);
    EXPECT_GE(ids.front(), before);
    for (size_t i = 1; i < ids.size(); ++i) ASSERT_EQ(ids[i], ids[i - 1] + 1);
    before = ids.back() + 1;
  }
  // Enough words follow the last start for a whole context.
  EXPECT_LE(prompts->back().front() + source->config().context_length, source->config().vocab_size);
  EXPECT_NE(*prompts, *planted_prompts(source->config(), 2, 4, 64));
}

TEST(PlantedPrompt, FilesHoldTheTexts) {
  const auto source = make_planted(odd_planted_shape());
  const auto prompts = planted_prompts(source->config(), 1, 2, 20);
  ASSERT_TRUE(prompts.ok()) << prompts.error().line();
  const TempFolder folder;
  ASSERT_TRUE(write_planted_prompts(*source, folder.path() + "/m.prompt", *prompts).ok());
  const auto tokenizer = make_tokenizer(*source->vocab(), "planted");
  const auto ids_in = [&](const char* name) {
    return (*tokenizer)->encode(*read_whole_file(folder.path() + name, 1 << 20), true, true);
  };
  EXPECT_EQ(ids_in("/m.prompt.txt"), (*prompts)[0]);
  EXPECT_EQ(ids_in("/m.prompt-2.txt"), (*prompts)[1]);
}

TEST(PlantedPrompt, RefusesWhatDoesNotFit) {
  const auto source = make_planted(odd_planted_shape());  // 74 words
  EXPECT_TRUE(planted_prompts(source->config(), 1, 1, 74).ok());
  EXPECT_THAT(planted_prompts(source->config(), 1, 2, 38).error().line(),
              HasSubstr("2 documents of 38 tokens do not fit"));
  EXPECT_FALSE(planted_prompts(source->config(), 1, 0, 10).ok());
  EXPECT_FALSE(planted_prompts(source->config(), 1, 4, 0).ok());
}

}  // namespace
}  // namespace tierd
