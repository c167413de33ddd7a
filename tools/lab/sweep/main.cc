// tier-sweep: measures the speed of a model at several values of a configuration's keys, and draws it.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/standard_streams.h"
#include "tools/command_line/exit_code.h"
#include "tools/lab/sweep/arguments.h"
#include "tools/lab/sweep/gnuplot_script.h"
#include "tools/lab/sweep/picture.h"
#include "tools/lab/sweep/sweep_course.h"
#include "tools/lab/sweep/sweep_output.h"

namespace tierd {
namespace {

int run(const SweepArguments& arguments) {
  if (const Status usable = check_sweep(arguments); !usable.ok()) return fail(usable.error(), kBadInput);
  const SweepFigures report = measure_sweep(arguments);
  fmt::print("{}", sweep_text(report, arguments.format));
  const bool failed =
      std::ranges::any_of(report.points, [](const PointFigures& point) { return point.error.has_value(); });
  const int code = failed ? kFailed : 0;
  if (!arguments.plot) return code;
  const auto picture = picture_of(report);
  if (!picture.ok()) return fail(picture.error(), kFailed);
  const Status drawn = arguments.plot->write(gnuplot_script(*picture, arguments.plot->kind()));
  return drawn.ok() ? code : fail(drawn.error(), kFailed);
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  const tierd::ParsedSweep parsed = tierd::parse_sweep_arguments(argc, argv);
  if (parsed.exit_code) return *parsed.exit_code;
  return tierd::run(parsed.arguments);
}
