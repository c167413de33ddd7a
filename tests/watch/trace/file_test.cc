#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/watch/trace/reader.h"
#include "core/watch/trace/recorder.h"
#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"
#include "tests/watch/trace/trace_world.h"

namespace tierd {
namespace {

const WallClock kClock;

using testing::HasSubstr;

// Records a few steps, as the kernel would report them.
void tell(Recorder& recorder, uint32_t steps) {
  const ActiveSet given = ActiveSet::of({1, 3});
  recorder.fill_begins();
  for (uint32_t step = 0; step < steps; ++step) {
    recorder.pass_begins(0, {step, 1, {}, false, &given, {}});
    recorder.activated(1, ActiveSet::all(5));
    Message message;
    message.id = {3, step};
    message.agent = 2;
    message.memory = 1;
    message.edition = 1;
    const std::vector<Unit> units = {{13, 64}, {14, 128}};
    recorder.posted(message, {.units = units});
    recorder.turn_begins();
    recorder.turn_begins();  // the turn before had no events
    recorder.sent(message);
    Done done;
    done.id = message.id;
    done.bytes = 8192;
    recorder.delivered(message, done, false);
    recorder.evicted(1, 0, std::vector<uint32_t>{4});
    recorder.step_ends(step);
    recorder.settled([step] { return uint64_t{step} * 77; });
  }
}
constexpr uint64_t kEventsAStep = 9;

std::string write_trace(const TempFolder& folder, uint32_t steps) {
  const std::string path = folder.path() + "/run.trace";
  auto recorder = Recorder::create(path, small_header(), kClock);
  EXPECT_TRUE(recorder.ok());
  tell(**recorder, steps);
  EXPECT_TRUE((*recorder)->finish().ok());
  return path;
}

struct Read {
  Status opened;
  Status status;
  uint64_t events = 0;
  bool whole = false;
};
Read read_all(const std::string& path) {
  Read read;
  auto reader = TraceReader::open(path);
  if (!reader.ok()) {
    read.opened = reader.error();
    return read;
  }
  for (; reader->peek() != nullptr; reader->next()) {
    EXPECT_EQ(reader->position(), read.events);
    ++read.events;
  }
  read.status = reader->status();
  read.whole = reader->whole();
  return read;
}

TEST(TraceFile, HoldsWhatWasTold) {
  const TempFolder folder;
  const std::string path = write_trace(folder, 2);
  auto reader = TraceReader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.error().line();
  EXPECT_EQ(header_json(reader->header()), header_json(small_header()));
  for (int pass = 0; pass < 2; ++pass) {
    std::string text;
    for (; const Event* event = reader->peek(); reader->next())
      text += event_text(*event, reader->header().sites) + "\n";
    EXPECT_TRUE(reader->whole());
    EXPECT_THAT(text, HasSubstr("fill\n"
                                "pass site 0 of step 0, 1 rows, given 1 3\n"
                                "active in site 1: all\n"
                                "post #3.0 read site 0 3-4 at 1+4096, step 0, demand, to agent 2\n"
                                "turn\n"
                                "send #3.0\n"
                                "done #3.0 ok, 0 units, 8192 B\n"
                                "evict site 1 4\n"
                                "step 0 ends\n"
                                "residency 0000000000000000\n"
                                "pass site 0 of step 1"));
    reader->rewind();
  }
}

TEST(TraceFile, ManyBlocksAreRead) {
  const TempFolder folder;
  const Read read = read_all(write_trace(folder, 20'000));
  EXPECT_TRUE(read.status.ok());
  EXPECT_TRUE(read.whole);
  EXPECT_EQ(read.events, 1 + 20'000 * kEventsAStep);
}

TEST(TraceFile, NothingFollowsAnInterruption) {
  const TempFolder folder;
  const std::string path = folder.path() + "/run.trace";
  {
    auto recorder = Recorder::create(path, small_header(), kClock);
    ASSERT_TRUE(recorder.ok());
    tell(**recorder, 1);
    (*recorder)->interrupted();
    tell(**recorder, 1);
    ASSERT_TRUE((*recorder)->finish().ok());
  }
  EXPECT_EQ(read_all(path).events, 1 + kEventsAStep + 1);
}

// A file that is cut off anywhere gives a prefix of the events, and never counts as whole.
TEST(TraceFile, OneThatWasCutOffIsReadUpToThere) {
  const TempFolder folder;
  const std::string bytes = file_text(write_trace(folder, 3));
  uint64_t prefixes = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Read read = read_all(folder.write("cut", std::string_view(bytes).substr(0, size)));
    EXPECT_FALSE(read.whole) << size;
    EXPECT_TRUE(read.status.ok()) << size;
    prefixes += read.opened.ok() ? 1 : 0;
  }
  EXPECT_GT(prefixes, 100u);
  EXPECT_TRUE(read_all(folder.write("cut", bytes)).whole);
  const Read more = read_all(folder.write("cut", bytes + "x"));
  EXPECT_FALSE(more.whole);
  EXPECT_EQ(more.status.code(), Code::corrupt);
}

TEST(TraceFile, AFlippedBitIsFound) {
  const TempFolder folder;
  const std::string bytes = file_text(write_trace(folder, 3));
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const Read read = read_all(folder.write("damaged", damaged));
    EXPECT_FALSE(read.opened.ok() && read.status.ok() && read.whole) << "byte " << at;
  }
}

TEST(TraceFile, WhatIsNoTraceIsRefused) {
  const TempFolder folder;
  const auto line = [&](const std::string& path) {
    const auto reader = TraceReader::open(path);
    return reader.ok() ? std::string() : reader.error().line();
  };
  EXPECT_THAT(line(folder.path() + "/none"), HasSubstr("none: cannot open"));
  EXPECT_THAT(line(folder.path()), HasSubstr("is a folder"));
  EXPECT_THAT(line(folder.write("text", "hello, this is no trace at all")),
              HasSubstr("text: is no trace; tierd --trace FILE writes one"));
  std::string bytes = file_text(write_trace(folder, 1));
  bytes[8] = 99;
  EXPECT_THAT(line(folder.write("other", bytes)),
              HasSubstr("is a trace of version 99, this program reads version 24"));
}

TEST(TraceFile, AFileThatCannotBeWrittenIsAnError) {
  const TempFolder folder;
  const auto none = Recorder::create(folder.path() + "/no/such/folder", small_header(), kClock);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.code(), Code::io_error);
  auto full = Recorder::create("/dev/full", small_header(), kClock);
  ASSERT_TRUE(full.ok());
  tell(**full, 10'000);
  const Status finished = (*full)->finish();
  ASSERT_FALSE(finished.ok());
  EXPECT_THAT(finished.error().line(), HasSubstr("/dev/full: the trace could not be written: No space left"));
}

}  // namespace
}  // namespace tierd
