#include "tools/lab/sweep/arguments.h"

#include <fmt/format.h>

#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"

namespace tierd {
namespace {

constexpr const char* kDescription =
    "tier-sweep measures a model, as tier-bench does, at each of several values of one or two keys of the\n"
    "configuration, and draws the result.\n"
    "\n"
    "  tier sweep --config configs/llm-in-a-flash.toml --set predictor.tensors=opt.predictor.safetensors \\\n"
    "    -m opt.store -f opt.prompt.txt -n 64 -r 3 --sweep cache.k=1,2,3,4,5,6 --plot window.svg\n"
    "\n"
    "The table goes to stdout, progress to stderr. Exit: 0 done; 1 a measurement failed;\n"
    "2 a bad argument, model or configuration.";

Status complete(const std::vector<std::string>& axes, const std::string& plot,
                MeasurementArguments& measurement, SweepArguments& arguments) {
  TIERD_TRY(measurement.complete(true));
  TIERD_ASSIGN(arguments.sweep, make_sweep(axes, arguments.config_file, arguments.overrides));
  // A flag that stands for a swept key would override every point.
  for (const SweepAxis& axis : arguments.sweep.axes) {
    const std::string_view flag = measurement.flag_of(axis.key);
    if (!flag.empty())
      return Error{Code::invalid_argument, "--sweep",
                   fmt::format("'{}' has a value by {} as well", axis.key, flag)};
  }
  if (!plot.empty()) {
    TIERD_ASSIGN(arguments.plot, PlotFile::open(plot));
  }
  for (SweepPoint& point : arguments.sweep.points) TIERD_TRY(measurement.settle(point.config));
  return {};
}

}  // namespace

ParsedSweep parse_sweep_arguments(int argc, char** argv) {
  ParsedSweep parsed;
  MeasurementArguments measurement(parsed.arguments);
  std::vector<std::string> axes;
  std::string plot;
  CommandLine line("tier-sweep", kDescription);
  measurement.add_to("tier-sweep", line);
  line.option("--sweep", axes,
              "measure at each of these values of a key that --set takes, in turn; given twice, at each pair")
      .named("KEY=V,V...")
      .required();
  line.option("--plot", plot,
              "draw the sweep: .svg, .png or .pdf, by gnuplot; .gp is the script that it would get")
      .named("FILE");
  parsed.exit_code = line.parse(argc, argv);
  if (parsed.exit_code) return parsed;
  if (const Status status = complete(axes, plot, measurement, parsed.arguments); !status.ok())
    parsed.exit_code = fail(status.error(), kBadInput);
  return parsed;
}

}  // namespace tierd
