#include "core/watch/trace/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sanitized.h"
#include "tests/watch/trace/trace_world.h"

namespace tierd {
namespace {

using testing::HasSubstr;

void expect_same(const Event& a, const Event& b) {
  EXPECT_EQ(a.ns, b.ns);
  EXPECT_EQ(a.what, b.what) << event_text(a, {}) << " / " << event_text(b, {});
  if (const auto* delivered = a.as<Delivered>()) {  // compares the times, too
    EXPECT_EQ(delivered->done, b.as<Delivered>()->done);
  }
}

TEST(Codec, EveryEventComesBackAsItWas) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    EventEncoder encoder;
    std::vector<Event> events;
    uint64_t ns = 0;
    for (int i = 0; i < 300; ++i) encoder.add(events.emplace_back(draw_event(random, ns)));
    EXPECT_EQ(encoder.events(), 300u);
    const auto read = decode_events(encoder.bytes(), "trace");
    ASSERT_TRUE(read.ok()) << read.error().line();
    ASSERT_EQ(read->size(), events.size());
    for (size_t i = 0; i < events.size(); ++i) expect_same(events[i], (*read)[i]);
  }
}

TEST(Codec, ADenseListCostsAsMuchAsOneNeuron) {
  const auto bytes_of = [](uint32_t neurons) {
    Posted posted;
    for (uint32_t i = 0; i < neurons; ++i) posted.units.push_back({70'000 + i, 64 * i});
    EventEncoder encoder;
    encoder.add({0, posted});
    return encoder.bytes().size();
  };
  EXPECT_LE(bytes_of(10'000), bytes_of(2) + 6);
}

// Damage that a checksum would have found: decoding must return, with any result.
TEST(Codec, BytesThatMakeNoSenseAreAnErrorOrOtherEvents) {
  Random random(5);
  EventEncoder encoder;
  uint64_t ns = 0;
  for (int i = 0; i < 60; ++i) encoder.add(draw_event(random, ns));
  const std::vector<std::byte> bytes(encoder.bytes().begin(), encoder.bytes().end());
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    (void)decode_events(std::span(bytes).first(cut), "trace");
  }
  for (int i = 0; i < (kSanitized ? 2'000 : 20'000); ++i) {
    std::vector<std::byte> damaged = bytes;
    for (uint32_t k = 0; k <= random.below(3); ++k)
      damaged[random.below(static_cast<uint32_t>(damaged.size()))] =
          static_cast<std::byte>(random.below(256));
    const auto read = decode_events(damaged, "trace");
    if (!read.ok()) {
      EXPECT_EQ(read.code(), Code::corrupt);
      continue;
    }
    for (const Event& event : *read) (void)event_text(event, small_header().sites);
  }
}

TEST(Codec, AListThatNeverEndsIsNotBelieved) {
  // Event "evicted", time 0, unit 0, edition 0, 2^27 neurons, all in one run.
  const std::vector<uint8_t> bytes = {7, 0, 0, 0, 0x80, 0x80, 0x80, 0x40, 0xff, 0xff, 0xff, 0x3f, 2};
  const auto read = decode_events(std::as_bytes(std::span(bytes)), "trace");
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().line(), HasSubstr("trace: event 0 of the block makes no sense"));
}

TEST(Event, SaysWhatHappened) {
  const SiteTable sites = small_header().sites;
  const auto text = [&](auto what) { return event_text({0, std::move(what)}, sites); };
  EXPECT_EQ(text(Activated{1, std::nullopt}), "active in site 1: all");
  EXPECT_EQ(text(Activated{9, std::vector<uint32_t>{}}), "active in site 9: none");
  EXPECT_EQ(text(Activated{1, std::vector<uint32_t>{3}, true, {0.5F}}),
            "active in site 1: 3, by row, ranked");
  EXPECT_EQ(text(Evicted{1, 1, {0, 1, 2, 4}}), "evict site 2 0-2 4");
  EXPECT_EQ(text(Evicted{2, 2, {4}}), "evict edition 2 4 in memory 2");
  EXPECT_EQ(text(LookedAhead{1, {{2, 1, std::vector<uint32_t>{3, 4}}, {0, 2, std::nullopt}}}),
            "site 1 looks ahead: site 2, 1 on: 3-4; site 0, 2 on: all");
  EXPECT_EQ(text(Resized{{8192, std::nullopt, 64}}), "arenas: 8192 B as before 64 B");
  EXPECT_EQ(text(PassBegins{0, 3, 2, true, std::vector<uint32_t>{1}}),
            "pass site 0 of step 3, 2 rows, past the caches, given 1");
  Posted posted;
  posted.message.id = {4, 1};
  posted.message.site = 1;
  posted.message.agent = 2;
  posted.message.flags = kRunAfter;
  posted.message.memory = 1;
  posted.units = {{5, 64}, {6, 128}};
  EXPECT_EQ(text(posted), "post #4.1 read site 1 0-1 at 1+4096, step 0, demand, to agent 2, after");
  posted.message.op = Op::move;
  posted.message.from = 3;
  posted.message.flags = 0;
  EXPECT_EQ(text(posted),
            "post #4.1 move site 1, 2 slots of memory 3 in memory 1, step 0, demand, to agent 2");
  posted.message.op = Op::read;
  posted.message.edition = 9;
  EXPECT_EQ(text(posted), "post #4.1 read site 1 5-6 at 1+4096, step 0, demand, to agent 2");
  posted.message.op = Op::run;
  posted.message.about = {3, 7};
  EXPECT_EQ(text(posted), "post #4.1 run site 1 5-6 at 1+4096, step 0, demand, to agent 2, behind #3.7");
}

TEST(Event, NamesTheEditionWhereASiteHasSeveral) {
  const SiteTable sites = header_of_several_editions().sites;
  const auto text = [&](EditionId edition) { return event_text({0, Evicted{1, edition, {3}}}, sites); };
  EXPECT_EQ(text(0), "evict site 1 3");
  EXPECT_EQ(text(1), "evict site 2 (edition 0) 3");
  EXPECT_EQ(text(2), "evict site 2 (edition 1) 3");
}

}  // namespace
}  // namespace tierd
