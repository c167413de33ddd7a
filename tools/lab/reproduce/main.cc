// tier-reproduce: compares the papers' published figures with this kernel and its plugins in virtual time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/progress.h"
#include "core/base/standard_streams.h"
#include "core/report/figure_json.h"
#include "tools/command_line/command_line.h"
#include "tools/command_line/exit_code.h"
#include "tools/command_line/text_file.h"
#include "tools/lab/plot/plot_file.h"
#include "tools/lab/reproduce/outcome.h"
#include "tools/lab/reproduce/picture.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Holds published figures against what comes out here. Each row names a run: a configuration, the shape "
    "of a model, the\n"
    "description of the paper's machine, and a profile by which it is drawn what is active. The run is "
    "played in virtual\n"
    "time by the kernel and the plugins that run real models; no weights and no such machine are needed.\n"
    "\n"
    "  tier-reproduce\n"
    "  tier-reproduce endor --json endor.json --plot endor.svg\n"
    "  tier-reproduce hermes --row batch\n"
    "\n"
    "A row's kind says what its passing proves: P, that the model is right; O, that an order is; F, little, "
    "since a\n"
    "constant was fitted; I, nothing but that bytes are counted right, since what is given contains the "
    "answer. N rows are\n"
    "not judged. The summary counts predictions apart. The same seed gives the same bytes.\n"
    "\n"
    "Exit status: 0; 1 if a row misses, or an output failed; 2 if something given cannot be used, with one "
    "line on standard\n"
    "error that says why.\n";

struct Options {
  std::vector<std::string> papers;
  std::string json;
  std::string plot;
  std::string row;
  uint64_t seed = 1;
  bool quiet = false;
};

// Drops the rows whose `what` does not contain `text`, and the runs that no other row names.
void keep_rows(const std::string& text, Reproduction& reproduction) {
  std::erase_if(reproduction.rows, [&](const Row& row) { return row.what.find(text) == std::string::npos; });
  std::erase_if(reproduction.runs, [&](const DescribedRun& run) {
    return std::ranges::none_of(reproduction.rows, [&](const Row& row) { return row.names(run.name); });
  });
}

Result<Reproduced> reproduce(Reproduction reproduction, uint64_t seed, Progress& progress) {
  std::map<std::string, Figures> runs;
  for (DescribedRun& run : reproduction.runs) {
    run.settings.push_back(fmt::format("run.seed={}", seed));
    TIERD_ASSIGN(runs[run.name], play_run(run));
    progress.advance(1);
  }
  Reproduced reproduced;
  for (const Row& row : reproduction.rows) {
    TIERD_ASSIGN(reproduced.outcomes.emplace_back(), judge(row, runs));
  }
  reproduced.reproduction = std::move(reproduction);
  reproduced.runs = std::move(runs);
  return reproduced;
}

Result<bool> reproduce_all(const Options& options) {
  std::optional<PlotFile> plot;
  if (!options.plot.empty()) {
    TIERD_ASSIGN(plot, PlotFile::open(options.plot));
  }
  std::vector<Reproduction> papers;
  uint64_t runs = 0, rows = 0;
  for (const std::string& name : options.papers.empty() ? known_reproductions() : options.papers) {
    TIERD_ASSIGN(papers.emplace_back(), read_reproduction(name));
    if (!options.row.empty()) keep_rows(options.row, papers.back());
    if (papers.back().rows.empty()) {
      papers.pop_back();
      continue;
    }
    rows += papers.back().rows.size();
    runs += papers.back().runs.size();
  }
  if (rows == 0) {
    return Error{
        Code::not_found, "--row",
        fmt::format("no row has '{}' in its first column; a run without --row prints all rows", options.row)};
  }
  Progress progress("playing", runs, options.quiet, "runs");
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Reproduced> reproduced;
  for (Reproduction& paper : papers) {
    TIERD_ASSIGN(reproduced.emplace_back(), reproduce(std::move(paper), options.seed, progress));
  }
  if (progress.shown()) progress.finish();
  const ReproducedFigures report = reproduced_figures(reproduced, options.seed);
  if (plot) TIERD_TRY(plot->write(picture_script(report, plot->kind())));
  if (!options.json.empty()) TIERD_TRY(write_text_file(options.json, figures_json(report).dump(2) + "\n"));
  TIERD_TRY(write_output(reproduced_markdown(report)));
  if (!options.quiet) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    say(fmt::format("tier-reproduce: {} run{} in {:.1f} s, {:.1f} s of a processor", runs,
                    runs == 1 ? "" : "s", took.count(), static_cast<double>(std::clock()) / CLOCKS_PER_SEC));
  }
  return report.passed == report.judged;
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("tier-reproduce", kAbout);
  line.option("papers", options.papers,
              fmt::format("of which papers, or files; all without any: {}",
                          fmt::join(known_reproductions(), ", ")))
      .named("NAME");
  line.option("--json", options.json, "write what came out, for machines, to this file").named("FILE");
  line.option("--plot", options.plot, "draw it: FILE.svg, .png or .pdf with gnuplot, or its script, .gp")
      .named("FILE");
  line.option("--row", options.row, "only rows whose first column has this text, and their runs")
      .named("TEXT");
  line.option("-s,--seed", options.seed, "of what is drawn").named("N").shows_default();
  line.flag("-q,--quiet", options.quiet, "no progress, and no line about the time it took");
  if (const auto status = line.parse(argc, argv)) return *status;
  const Result<bool> passes = reproduce_all(options);
  if (passes.ok()) return *passes ? 0 : kFailed;
  say("tier-reproduce: " + passes.error().line());
  return exit_code(passes.error());
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
