// tier-trace and tier-activity on a readable trace: its summary, timeline, activity and replay. The input is
// that of the target `trace`.
#include <cstdio>
#include <string>

#include "core/base/check.h"
#include "core/run/run_trace.h"
#include "core/watch/trace/replay.h"
#include "core/watch/trace/what_if.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/trace_file.h"
#include "tools/lab/activity/activity.h"
#include "tools/tier/trace/summary.h"
#include "tools/tier/trace/timeline.h"

namespace tierd {
namespace {

// Calls `view`, which returns a Result or a Status, with a trace at its beginning.
template <class View>
void expect_value_or_line(const std::string& path, View view) {
  auto trace = TraceReader::open(path);
  TIERD_CHECK_MSG(trace.ok(), trace.error().line());
  const auto seen = view(*trace);
  if (!seen.ok()) expect_one_line(seen.error(), "");
}

std::FILE* nowhere() {
  static std::FILE* const file = std::fopen("/dev/null", "wb");
  TIERD_CHECK(file != nullptr);
  return file;
}

}  // namespace

void fuzz(std::string_view input) {
  static const InputFolder folder;
  static const ChooseStrategy strategies = strategies_on(PluginPath({TIERD_PLUGIN_DIR}));
  const std::string path = folder.write("run.trace", trace_file(input));
  if (!TraceReader::open(path).ok()) return;
  expect_value_or_line(path, [](TraceReader& trace) { return trace_summary(trace); });
  expect_value_or_line(path, [](TraceReader& trace) { return read_activity(trace, false); });
  expect_value_or_line(path, [](TraceReader& trace) { return read_asked(trace); });
  expect_value_or_line(path, [&](TraceReader& trace) { return write_timeline(trace, {}, nowhere(), path); });
  expect_value_or_line(path, [](TraceReader& trace) { return replay(trace, strategies); });
}

}  // namespace tierd
