// Traces with correct checksums and wrong events: every command on them succeeds or refuses them in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/checksum.h"
#include "core/watch/trace/codec.h"
#include "core/watch/trace/file_format.h"
#include "core/watch/trace/what_if.h"
#include "tests/base/temp_folder.h"
#include "tests/e2e/described_machine.h"
#include "tests/engine/model_world.h"
#include "tests/sanitized.h"
#include "tests/tier/trace/recorded_run.h"
#include "tools/lab/activity/activity.h"
#include "tools/lab/activity/truth.h"
#include "tools/tier/trace/play.h"
#include "tools/tier/trace/summary.h"

namespace tierd {
namespace {

class HostileEvents : public testing::Test {
 protected:
  Config config(const ModelWorld& world) const {
    Config config;
    config.model = world.folder();
    config.threads = 1;
    config.bind = false;
    config.context = 32;
    config.tier("dram").capacity = "75%";
    config.tier("dram").staging = "48 KiB";
    config.cache.name = "lru";
    config.predictor.name = "random";
    config.predictor.settings = {{"p", 0.6, "test"}};
    config.measure_every = 2;
    config.trace = folder_.path() + "/run.trace";
    return config;
  }
  std::string write(const TraceHeader& header, const std::vector<Event>& events) const {
    const std::string path = folder_.path() + "/hostile.trace";
    const std::string text = header_json(header);
    std::ofstream out(path, std::ios::binary);
    const auto put = [&](const auto& head) { out.write(reinterpret_cast<const char*>(&head), sizeof head); };
    TraceFileHead head;
    head.header_bytes = static_cast<uint32_t>(text.size());
    head.header_checksum = checksum(text);
    put(head);
    out << text;
    EventEncoder block;
    for (const Event& event : events) block.add({0, event.what});
    TraceBlockHead block_head;
    block_head.bytes = static_cast<uint32_t>(block.bytes().size());
    block_head.events = block.events();
    block_head.checksum = checksum(block.bytes());
    put(block_head);
    out.write(reinterpret_cast<const char*>(block.bytes().data()), block_head.bytes);
    put(TraceBlockHead{});
    return path;
  }

  const TempFolder folder_;
};

uint32_t draw_number(Random& random) {
  constexpr uint32_t kNumbers[] = {0, 1, 2, 7, 31, 63, 1000, 65'535, UINT32_MAX - 1, UINT32_MAX};
  return kNumbers[random.below(std::size(kNumbers))];
}

void damage(std::vector<uint32_t>& list, Random& random) {
  if (list.empty() || random.below(3) == 0) {
    list.push_back(draw_number(random));
  } else {
    list[random.below(static_cast<uint32_t>(list.size()))] = draw_number(random);
  }
}

void damage(Event& event, Random& random) {
  if (auto* pass = std::get_if<PassBegins>(&event.what)) {
    if (random.below(3) == 0) pass->site = draw_number(random);
    if (random.below(3) == 0) pass->step = draw_number(random);
    if (random.below(3) == 0) pass->rows = static_cast<uint16_t>(draw_number(random));
    if (random.below(3) == 0) pass->sequences.assign(pass->rows, draw_number(random));
    if (random.below(3) == 0) pass->bypass_caches = !pass->bypass_caches;
    if (pass->given && random.below(2) == 0) damage(*pass->given, random);
  } else if (auto* activated = std::get_if<Activated>(&event.what)) {
    if (random.below(3) == 0) activated->site = draw_number(random);
    if (random.below(3) == 0) activated->by_row = !activated->by_row;
    if (random.below(3) == 0) activated->neurons.reset();
    if (activated->neurons && random.below(3) == 0) damage(*activated->neurons, random);
    if (random.below(3) == 0) activated->scores.assign(draw_number(random) % 100, NAN);
  } else if (auto* measured = std::get_if<Measured>(&event.what)) {
    if (random.below(2) == 0) measured->site = draw_number(random);
    damage(measured->neurons, random);
  } else if (auto* fired = std::get_if<HasFired>(&event.what)) {
    damage(random.below(2) == 0 ? fired->neurons : fired->counts, random);
  } else if (auto* ahead = std::get_if<LookedAhead>(&event.what)) {
    ahead->wishes.push_back({draw_number(random), draw_number(random)});
  } else if (auto* begins = std::get_if<SequenceBegins>(&event.what)) {
    begins->sequence = draw_number(random);
  } else if (auto* ends = std::get_if<SequenceEnds>(&event.what)) {
    ends->sequence = draw_number(random);
  } else if (auto* kept = std::get_if<RowsKept>(&event.what)) {
    kept->rows = draw_number(random) & UINT16_MAX;
    kept->kept = random.below(kept->rows + 1);
  }
}

TEST_F(HostileEvents, AreRefusedOrPlayed) {
  const ModelWorld world(small_llama());
  const Config config = HostileEvents::config(world);
  History history;
  run(config, history);
  auto trace = TraceReader::open(config.trace);
  ASSERT_TRUE(trace.ok());
  std::vector<Event> events;
  for (; trace->peek() != nullptr && events.size() < 4000; trace->next()) events.push_back(*trace->peek());
  const auto choices = choose_recorded(trace->header(), choose());
  ASSERT_TRUE(choices.ok());
  Config described = config;
  described.machine = folder_.path() + "/machine.toml";
  write_machine(described.machine);
  Random random(5);
  uint32_t refused = 0, played = 0;
  const int tries = kSanitized ? 15 : 60;
  for (int i = 0; i < tries; ++i) {
    std::vector<Event> damaged = events;
    const auto at = [&] { return random.below(static_cast<uint32_t>(damaged.size())); };
    for (uint32_t n = 1 + random.below(6); n > 0; --n) {
      switch (random.below(4)) {
        case 0:
          damaged.erase(damaged.begin() + at());
          break;
        case 1:
          damaged.insert(damaged.begin() + at(), damaged[at()]);
          break;
        default:
          for (uint32_t of = 0; of < 8; ++of) damage(damaged[at()], random);
      }
    }
    const std::string path = write(trace->header(), damaged);
    const auto view = [&](auto make) {
      auto hostile = TraceReader::open(path);
      ASSERT_TRUE(hostile.ok());
      const auto made = make(*hostile);
      if (!made.ok()) {
        EXPECT_EQ(made.error().line().find('\n'), std::string::npos);
      }
      ++(made.ok() ? played : refused);
    };
    view([](TraceReader& of) { return trace_summary(of); });
    view([](TraceReader& of) { return read_activity(of, false); });
    view([&](TraceReader& of) { return write_truth(of, path + ".truth"); });
    view([&](TraceReader& of) -> Result<WhatIf> {
      TIERD_ASSIGN(const std::vector<Asked> asked, read_asked(of));
      return what_if(of.header(), asked, *choices, of.header().arena_bytes());
    });
    view([&](TraceReader& of) { return play(of, described, quiet()); });
  }
  EXPECT_GT(refused, 10u);
  EXPECT_GT(played, 10u);
}

}  // namespace
}  // namespace tierd
