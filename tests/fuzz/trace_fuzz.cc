// A trace: its header up to the first NUL, then a block of events, both with matching checksums.
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/watch/trace/codec.h"
#include "core/watch/trace/reader.h"
#include "core/watch/trace/recorded_pass.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/trace_file.h"

namespace tierd {
namespace {

std::vector<std::byte> written(const std::vector<Event>& events) {
  EventEncoder encoder;
  for (const Event& event : events) encoder.add(event);
  return {encoder.bytes().begin(), encoder.bytes().end()};
}

// Events survive writing and reading. They are compared as bytes, because a setting may be NaN.
void expect_the_same_again(const std::vector<Event>& events) {
  const std::vector<std::byte> bytes = written(events);
  const auto again = decode_events(bytes, "again");
  TIERD_CHECK_MSG(again.ok(), again.error().line());
  TIERD_CHECK(again->size() == events.size() && written(*again) == bytes);
}

}  // namespace

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const std::string path = folder.write("run.trace", trace_file(input));
  auto trace = TraceReader::open(path);
  if (!trace.ok()) return expect_one_line(trace.error(), path);
  const std::string text = header_json(trace->header());
  // Padded to the input's size, which bounds the number of neurons.
  const auto same = parse_header(text + std::string(input.size(), ' '), path);
  TIERD_CHECK_MSG(same.ok() && header_json(*same) == text, text);

  std::vector<Event> events;
  for (; const Event* event = trace->peek(); trace->next()) {
    TIERD_CHECK(!event_text(*event, trace->header().sites).empty());
    if (const auto* begins = event->as<PassBegins>(); begins != nullptr) {
      const Status sound = check_pass(*begins, *trace);
      if (!sound.ok()) expect_one_line(sound.error(), path);
    }
    events.push_back(*event);
  }
  if (!trace->status().ok()) return expect_one_line(trace->status().error(), path);
  expect_the_same_again(events);
}

}  // namespace tierd
