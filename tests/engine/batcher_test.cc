#include "core/engine/batcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "core/base/random.h"
#include "core/engine/drafter.h"
#include "core/engine/session.h"
#include "tests/engine/model_world.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Tokens = std::vector<uint32_t>;

SharedTokens shared(Tokens tokens) {
  return std::make_shared<const Tokens>(std::move(tokens));
}

uint32_t greedy(std::span<const float> logits) {
  return static_cast<uint32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Takes the most probable token `most` times and records its calls.
class Greedy final : public Continuation {
 public:
  explicit Greedy(size_t most) : most_(most) {}

  void prompt_progress(const PromptProgress& at) override { progress.push_back(at); }
  void prompt_logits(size_t i, std::span<const float> logits) override {
    EXPECT_EQ(i, of_prompt.size());
    of_prompt.emplace_back(logits.begin(), logits.end());
  }
  Result<std::optional<uint32_t>> next(std::span<const float> logits) override {
    EXPECT_FALSE(over);
    tokens.push_back(greedy(logits));
    if (tokens.size() == most_) return std::optional<uint32_t>();
    return std::optional(tokens.back());
  }
  void ended(TextEnd how, const Status& why) override {
    EXPECT_FALSE(over);
    over = true;
    end = how;
    if (!why.ok()) error = why.error().line();
  }

  Tokens tokens;
  std::vector<PromptProgress> progress;
  std::vector<std::vector<float>> of_prompt;
  bool over = false;
  TextEnd end = TextEnd::failed;
  std::string error;

 private:
  size_t most_;
};

// Knows the texts and guesses them, with every `wrong`-th token wrong; 0: none.
class Knowing final : public Drafter {
 public:
  Knowing(std::vector<Tokens> texts, size_t wrong) : texts_(std::move(texts)), wrong_(wrong) {}
  Result<std::vector<uint32_t>> draft(std::span<const uint32_t> tokens, size_t most) override {
    for (const Tokens& text : texts_) {
      if (text.size() < tokens.size() || !std::equal(tokens.begin(), tokens.end(), text.begin())) continue;
      Tokens guesses;
      for (size_t at = tokens.size(); at < text.size() && guesses.size() < most; ++at)
        guesses.push_back(wrong_ != 0 && ++asked_ % wrong_ == 0 ? (text[at] + 1) % 300 : text[at]);
      return guesses;
    }
    return Error{Code::internal, "drafter", "knows nothing of this text"};
  }

 private:
  std::vector<Tokens> texts_;
  size_t wrong_;
  size_t asked_ = 0;
};

class BatcherTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { world_ = new ModelWorld(small_llama()); }
  static void TearDownTestSuite() {
    delete world_;
    world_ = nullptr;
  }

  void start(uint32_t sequences, size_t most_waiting = 100, const ModelWorld::Change& change = {},
             std::vector<Drafter*> drafters = {}, uint32_t most_guesses = 0, uint32_t logit_rows = 1) {
    auto runtime = world_->start(
        [&](Config& c) {
          c.sequences = sequences;
          if (change) change(c);
        },
        true, logit_rows);
    ASSERT_TRUE(runtime.ok()) << runtime.error().line();
    runtime_ = std::move(*runtime);
    batcher_.emplace(runtime_->engine(),
                     Batcher::Options{sequences, most_waiting, std::move(drafters), most_guesses});
  }
  std::shared_ptr<Greedy> add(Tokens prompt, size_t most, bool prompt_logits = false) {
    auto text = std::make_shared<Greedy>(most);
    const auto id = batcher_->add({shared(std::move(prompt)), prompt_logits, text});
    EXPECT_TRUE(id.ok()) << id.error().line();
    if (id.ok()) id_ = *id;
    return text;
  }
  void finish() {
    while (batcher_->busy()) ASSERT_TRUE(batcher_->step().ok());
  }
  // Returns a text's tokens when it is the only one.
  static Tokens alone(const Tokens& prompt, size_t most) { return alone(*world_, prompt, most); }
  static Tokens alone(const ModelWorld& world, const Tokens& prompt, size_t most) {
    const auto runtime = world.start();
    Session session((*runtime)->engine(), 0);
    Tokens tokens;
    auto logits = session.append(prompt);
    while (logits.ok()) {
      tokens.push_back(greedy(*logits));
      if (tokens.size() == most || session.position() == (*runtime)->engine().context()) break;
      logits = session.append(std::span(tokens).last(1));
    }
    EXPECT_TRUE((*runtime)->engine().drain().ok());
    return tokens;
  }
  void TearDown() override {
    if (!runtime_) return;
    batcher_.reset();
    ASSERT_TRUE(runtime_->engine().drain().ok());
    EXPECT_EQ(runtime_->dispatcher().in_flight(), 0u);
  }

  static inline ModelWorld* world_ = nullptr;
  std::unique_ptr<Runtime> runtime_;
  std::optional<Batcher> batcher_;
  Batcher::Id id_ = 0;
};

// Guesses change when tokens are computed, not which: right or wrong, few rows or many, one text or several.
TEST_F(BatcherTest, GuessesChangeNoText) {
  Random random(7);
  std::vector<Tokens> prompts, expected, whole;
  for (int i = 0; i < 9; ++i) {
    Tokens prompt(1 + random.below(20));
    for (uint32_t& token : prompt) token = random.below(300);
    expected.push_back(alone(prompt, 10 + random.below(20)));
    whole.push_back(prompt);
    whole.back().insert(whole.back().end(), expected.back().begin(), expected.back().end());
    prompts.push_back(std::move(prompt));
  }
  struct Case {
    uint32_t sequences, logit_rows, most;
    size_t wrong;
  };
  for (const Case& c : {Case{1, 5, 4, 0}, Case{1, 5, 4, 3}, Case{1, 5, 4, 1}, Case{3, 64, 7, 5},
                        Case{4, 9, 7, 2}, Case{3, 3, 7, 5}, Case{3, 64, 63, 0}}) {
    SCOPED_TRACE(testing::Message() << c.sequences << " texts, " << c.logit_rows << " rows, every " << c.wrong
                                    << "th guess wrong");
    Knowing knowing(whole, c.wrong);
    PromptLookup lookup;
    std::vector<Drafter*> drafters(c.sequences, &knowing);
    if (c.sequences == 4) drafters.back() = &lookup;
    start(
        c.sequences, 100, [](Config& config) { config.tier("dram").capacity = "60%"; }, drafters, c.most,
        c.logit_rows);
    std::vector<std::shared_ptr<Greedy>> texts;
    for (size_t i = 0; i < prompts.size(); ++i) texts.push_back(add(prompts[i], expected[i].size()));
    finish();
    size_t generated = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i]->tokens, expected[i]) << i;
      EXPECT_EQ(texts[i]->end, TextEnd::finished);
      generated += expected[i].size();
    }
    const Batcher::Counters& counters = batcher_->counters();
    EXPECT_EQ(counters.generated_tokens, generated);
    EXPECT_GT(counters.guesses, 0U) << "where no row is left over, the last texts have those of others";
    EXPECT_LE(counters.right_guesses, counters.guesses);
    // The last step of a text may have guessed beyond its end.
    if (c.wrong == 0) {
      EXPECT_GE(counters.right_guesses + prompts.size() * c.most, counters.guesses);
    }
    if (c.wrong == 1) {
      EXPECT_EQ(counters.right_guesses, 0U);
    }
    if (c.sequences == 1 && c.wrong == 0) {
      EXPECT_LT(counters.steps, generated / 3 + 2 * prompts.size());
    }
  }
}

TEST_F(BatcherTest, GuessesFillAContextToItsEnd) {
  const Tokens prompt = {5, 6, 7};
  const Tokens expected = alone(prompt, 1000);
  Tokens whole = prompt;
  whole.insert(whole.end(), expected.begin(), expected.end());
  for (const size_t wrong : {0, 4}) {
    Knowing knowing({whole}, wrong);
    start(1, 100, {}, {&knowing}, 7, 8);
    const auto text = add(prompt, 1000);
    finish();
    EXPECT_EQ(text->tokens, expected);
    EXPECT_EQ(text->end, TextEnd::context_full);
  }
}

TEST_F(BatcherTest, ADrafterThatFailsGuessesNothing) {
  const Tokens prompt = {5, 6, 7};
  Knowing knowing({}, 0);
  start(1, 100, {}, {&knowing}, 7, 8);
  const auto text = add(prompt, 12);
  finish();
  EXPECT_EQ(text->tokens, alone(prompt, 12));
  EXPECT_EQ(batcher_->counters().guesses, 0U);
}

TEST_F(BatcherTest, EachTextIsWhatItIsAlone) {
  Random random(1);
  std::vector<Tokens> prompts;
  std::vector<Tokens> expected;
  std::vector<size_t> lengths;
  for (int i = 0; i < 24; ++i) {
    Tokens prompt(1 + random.below(40));
    for (uint32_t& token : prompt) token = random.below(300);
    lengths.push_back(1 + random.below(12));
    expected.push_back(alone(prompt, lengths.back()));
    prompts.push_back(std::move(prompt));
  }
  struct Case {
    uint32_t sequences, ubatch;
    const char* cache;
  };
  for (const Case& c :
       {Case{1, 512, "pinned"}, Case{3, 16, "none"}, Case{8, 512, "lru"}, Case{24, 24, "pinned"}}) {
    start(c.sequences, 100, [&](Config& config) {
      config.ubatch = c.ubatch, config.cache.name = c.cache, config.tier("dram").capacity = "60%";
    });
    std::vector<std::shared_ptr<Greedy>> texts;
    for (size_t i = 0; i < prompts.size(); ++i) {
      texts.push_back(add(prompts[i], lengths[i]));
      if (i % 5 != 0) continue;
      ASSERT_TRUE(batcher_->step().ok());  // the texts arrive one after the other
    }
    finish();
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(texts[i]->tokens, expected[i]) << i << " of " << c.sequences;
      EXPECT_EQ(texts[i]->end, TextEnd::finished);
      EXPECT_EQ(texts[i]->progress.back().done, prompts[i].size());
    }
    EXPECT_EQ(batcher_->counters().texts, texts.size());
    EXPECT_LE(runtime_->budget().used(), runtime_->budget().capacity());
    TearDown();
  }
}

TEST_F(BatcherTest, ASharedStepReadsOnceForAll) {
  start(8, 100, [](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "60%"; });
  const auto read_bytes = [&](size_t texts) {
    for (size_t i = 0; i < texts; ++i) add({static_cast<uint32_t>(i + 1)}, 9);
    const uint64_t before = runtime_->engine().decode_times().read_bytes;
    finish();
    return runtime_->engine().decode_times().read_bytes - before;
  };
  (void)read_bytes(1);
  const uint64_t one = read_bytes(1);
  EXPECT_LT(read_bytes(8), one + one / 10);  // plus eight rows of the embedding
}

TEST_F(BatcherTest, WhatWasComputedBeforeIsNotComputedAgain) {
  start(2);
  Tokens prompt = {1, 17, 250, 33, 33, 299, 4, 90};
  const auto first = add(prompt, 4);
  finish();
  prompt.insert(prompt.end(), first->tokens.begin(), first->tokens.end());  // the last token was never fed
  prompt.push_back(5);
  const auto second = add(prompt, 3);
  finish();
  EXPECT_EQ(second->progress.front().cached, 8u + 3);
  EXPECT_EQ(second->tokens, alone(prompt, 3));
  EXPECT_EQ(batcher_->counters().cached_tokens, 11u);

  // Again: only the last token is computed, for its logits.
  const auto third = add(prompt, 3);
  finish();
  EXPECT_EQ(third->progress.front().cached, prompt.size() - 1);
  EXPECT_EQ(third->tokens, second->tokens);
}

TEST_F(BatcherTest, ATextGoesWhereItHasMostInCommonElseWhereNobodyWasForLong) {
  start(3);
  const Tokens a = {1, 2, 3, 4, 5, 6}, b = {1, 20, 30, 40, 50}, c = {1, 7, 7, 7};
  for (const Tokens& prompt : {a, b, c}) {
    add(prompt, 1);
    finish();
  }
  const auto cached = [&](Tokens prompt) {
    const auto text = add(std::move(prompt), 1);
    finish();
    return text->progress.front().cached;
  };
  EXPECT_EQ(cached({1, 20, 30, 40, 99}), 4u);
  // Only one token in common with each: the text takes the place of a, the oldest, and the others stay.
  EXPECT_EQ(cached({1, 200, 201, 202}), 1u);
  EXPECT_EQ(cached({1, 7, 7, 7, 8}), 4u);
  EXPECT_EQ(cached({1, 20, 30, 40, 99, 98}), 5u);
  EXPECT_EQ(cached({1, 200, 201, 202, 203}), 4u);
}

TEST_F(BatcherTest, LogitsOfAPromptAreThoseOfASession) {
  const Tokens prompt = {1, 17, 250, 33, 33, 299, 4};
  start(2, 100, [](Config& c) { c.ubatch = 3; });
  add(prompt, 1);
  finish();
  const auto text = add(prompt, 2, true);  // in chunks of two: two rows have logits
  const auto other = add({9, 8, 7}, 5);
  finish();
  const auto one = world_->start();
  Session session((*one)->engine(), 0);
  std::vector<std::vector<float>> expected;
  for (const uint32_t token : prompt) {
    const auto logits = session.append({&token, 1});
    expected.emplace_back(logits->begin(), logits->end());
  }
  EXPECT_EQ(text->of_prompt, expected);
  EXPECT_EQ(text->progress.front().cached, 0u);
  EXPECT_EQ(other->tokens, alone({9, 8, 7}, 5));
  EXPECT_TRUE(other->of_prompt.empty());
}

TEST_F(BatcherTest, AFullContextEndsATextAfterItsLastToken) {
  start(2, 100, [](Config& c) { c.context = 8; });
  const auto text = add({1, 2, 3, 4, 5, 6}, 100);
  const auto full = add({1, 2, 3, 4, 5, 6, 7, 8}, 100);
  finish();
  EXPECT_EQ(text->end, TextEnd::context_full);
  EXPECT_EQ(text->tokens.size(), 3u);  // the last of them has no place
  EXPECT_EQ(full->tokens.size(), 1u);
  const auto long_one = batcher_->add({shared(Tokens(9, 1)), false, std::make_shared<Greedy>(1)});
  EXPECT_EQ(long_one.code(), Code::no_space);
  EXPECT_EQ(long_one.error().line(),
            "context: 9 tokens do not fit in a context of 8; set a larger one with -c");
}

TEST_F(BatcherTest, RefusesATokenThatIsNoneAndMoreThanMayWait) {
  start(1, 2);
  const auto bad = batcher_->add({shared({1, 300}), false, std::make_shared<Greedy>(1)});
  EXPECT_EQ(bad.error().line(), "token: 300, expected a number below the vocabulary's size 300");
  add({1}, 5), add({2}, 5), add({3}, 5);
  const auto queued = batcher_->add({shared({4}), false, std::make_shared<Greedy>(1)});
  EXPECT_EQ(queued.code(), Code::no_space);
  EXPECT_THAT(queued.error().line(), HasSubstr("queue: "));
  ASSERT_TRUE(batcher_->step().ok());
  EXPECT_FALSE(batcher_->add({shared({4}), false, std::make_shared<Greedy>(1)}).ok());  // one runs, two wait
  finish();
  EXPECT_EQ(add({4}, 1)->over, false);
  finish();
}

TEST_F(BatcherTest, ACancelledTextEndsWhereverItIsAndTheOthersGoOn) {
  start(2, 10, [](Config& c) { c.ubatch = 4; });
  const auto stays = add({1, 2, 3}, 6);
  const auto in_prompt = add(Tokens(30, 9), 5);
  const Batcher::Id prompt_id = id_;
  const auto waits = add({7, 7}, 5);
  const Batcher::Id waits_id = id_;
  const auto last = add({4, 5}, 5);
  ASSERT_TRUE(batcher_->step().ok());
  batcher_->cancel(waits_id);
  EXPECT_EQ(waits->end, TextEnd::cancelled);
  EXPECT_TRUE(waits->progress.empty());
  batcher_->cancel(prompt_id);
  EXPECT_EQ(in_prompt->end, TextEnd::cancelled);
  batcher_->cancel(prompt_id);  // already over
  batcher_->cancel(12345);
  finish();
  EXPECT_EQ(stays->tokens, alone({1, 2, 3}, 6));
  EXPECT_EQ(last->tokens, alone({4, 5}, 5));
  // The cancelled text's computed tokens are used.
  const auto again = add(Tokens(30, 9), 5);
  finish();
  EXPECT_EQ(again->tokens, alone(Tokens(30, 9), 5));
}

TEST_F(BatcherTest, PromptsAndDecodingTakeTurns) {
  start(2, 10, [](Config& c) { c.ubatch = 4; });
  const auto first = add({1}, 20);
  ASSERT_TRUE(batcher_->step().ok());
  const auto second = add(Tokens(16, 9), 1);  // four chunks
  size_t steps = 0;
  while (!second->over) {
    ASSERT_TRUE(batcher_->step().ok());
    ++steps;
  }
  EXPECT_LE(steps, 8u);
  EXPECT_GE(first->tokens.size(), 4u);
  finish();
}

// The embedding row of one token is damaged.
TEST_F(BatcherTest, AFailedReadEndsTheTextsThatNeedItAndNoOther) {
  ModelConfig config = small_opt();
  config.tied_embeddings = false;
  const ModelWorld world(config);
  auto runtime = world.start(
      [](Config& c) {
        c.sequences = 3, c.cache.name = "none", c.tier("dram").capacity = "60%";
        c.tier("flash").settings = {{"direct", false, "test"}};
      },
      true);
  ASSERT_TRUE(runtime.ok()) << runtime.error().line();
  const Manifest& manifest = (*runtime)->plan().store.manifest();
  const StoredSite& embedding = manifest.sites.front();
  const uint32_t bad = embedding.neurons() - 1;
  const uint32_t token = bad * std::get<Rows>(embedding.cut).rows;
  const auto flip = [&] {
    std::fstream data(world.folder() + "/" + std::string(kDataFile),
                      std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(manifest.extents[embedding.first_extent + bad].offset + 9);
    data.seekg(at);
    const auto byte = static_cast<char>(data.get() ^ 0x10);
    data.seekp(at);
    data.put(byte);
  };
  const Tokens first = alone(world, {2, 3}, 6), last = alone(world, {5}, 6);
  Batcher batcher((*runtime)->engine(), {3, 10});
  std::vector<std::shared_ptr<Greedy>> texts;
  std::vector<Batcher::Id> ids;
  const auto add_all = [&] {
    texts.clear(), ids.clear();
    for (const Tokens& prompt : {Tokens{2, 3}, Tokens{2, token}, Tokens{5}}) {
      texts.push_back(std::make_shared<Greedy>(6));
      const auto id = batcher.add({shared(prompt), false, texts.back()});
      ASSERT_TRUE(id.ok());
      ids.push_back(*id);
    }
  };
  flip();
  add_all();
  while (batcher.busy()) ASSERT_TRUE(batcher.step().ok());
  EXPECT_EQ(texts[0]->tokens, first);
  EXPECT_EQ(texts[1]->end, TextEnd::failed);
  EXPECT_THAT(texts[1]->error, HasSubstr(std::string(kDataFile)));
  EXPECT_EQ(texts[2]->tokens, last);

  // One of the texts leaves while each is tried separately.
  add_all();
  ASSERT_TRUE(batcher.step().ok());
  batcher.cancel(ids[0]);
  while (batcher.busy()) ASSERT_TRUE(batcher.step().ok());
  EXPECT_EQ(texts[0]->end, TextEnd::cancelled);
  EXPECT_EQ(texts[1]->end, TextEnd::failed);
  EXPECT_EQ(texts[2]->tokens, last);
  flip();
  texts.push_back(std::make_shared<Greedy>(1));
  ASSERT_TRUE(batcher.add({shared({2, token}), false, texts.back()}).ok());
  while (batcher.busy()) ASSERT_TRUE(batcher.step().ok());
  EXPECT_EQ(texts.back()->end, TextEnd::finished);
  ASSERT_TRUE((*runtime)->engine().drain().ok());
}

TEST_F(BatcherTest, AnInterruptionLeavesTheTextsWhereTheyWere) {
  start(2, 10, [](Config& c) { c.cache.name = "none", c.tier("dram").capacity = "50%"; });
  const auto a = add({1, 2, 3}, 6), b = add({4}, 6);
  ASSERT_TRUE(batcher_->step().ok());
  runtime_->waiter().stop();
  EXPECT_EQ(batcher_->step().code(), Code::cancelled);
  EXPECT_FALSE(a->over);
  runtime_->waiter().clear_stop();
  finish();
  EXPECT_EQ(a->tokens, alone({1, 2, 3}, 6));
  EXPECT_EQ(b->tokens, alone({4}, 6));
}

TEST_F(BatcherTest, SequencesCanBeWatched) {
  start(2);
  add({1, 2, 3}, 6);
  auto states = batcher_->sequences();
  EXPECT_EQ(states.size(), 2u);
  EXPECT_FALSE(states[0].text.has_value());
  ASSERT_TRUE(batcher_->step().ok());
  states = batcher_->sequences();
  EXPECT_EQ(states[0].text, std::optional(id_));
  EXPECT_EQ(states[0].tokens, 3u);
  EXPECT_EQ(states[0].prompt_tokens, 3u);
  EXPECT_FALSE(states[0].in_prompt);
  batcher_->cancel_all();
  EXPECT_FALSE(batcher_->busy());
  EXPECT_FALSE(batcher_->sequences()[0].text.has_value());
}

}  // namespace
}  // namespace tierd
