// tier-bench: measures the speed of a configuration of a model on this machine, beside the machine's limit.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/base/standard_streams.h"
#include "tools/command_line/exit_code.h"
#include "tools/measurement/course.h"
#include "tools/measurement/output.h"
#include "tools/measurement/report.h"
#include "tools/tier/bench/arguments.h"

namespace tierd {
namespace {

int run(const Arguments& arguments) {
  Course course(arguments, "tier-bench: ");
  if (const Status loaded = course.load(); !loaded.ok())
    return fail(loaded.error(), exit_code(loaded.error()));
  const uint32_t layers = course.runtime().plan().store.manifest().config.n_layers;
  BenchFigures report{.run = run_figures(arguments, course.subject()), .tests = {}, .peer = {}};
  for (const Workload& test : arguments.tests) {
    const auto result = course.measure(test);
    if (!result.ok()) return fail(result.error(), kFailed);
    report.tests.push_back(test_figures(*result, layers));
    if (arguments.peer) report.peer = peer_figures(arguments, *result, course.bytes_beside_peer());
  }
  report.run.memory = course.memory_use();
  fmt::print("{}", to_text(report, arguments.format));
  return 0;
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  const tierd::Parsed parsed = tierd::parse_arguments(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  return tierd::run(parsed.arguments);
}
