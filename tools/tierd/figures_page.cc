#include "tools/tierd/figures_page.h"

#include <fmt/format.h>

#include "core/watch/trace/header.h"
#include "tools/measurement/figures.h"
#include "tools/tierd/check.h"
#include "tools/tierd/report.h"
#include "tools/tierd/server/api/metrics.h"

namespace tierd {
namespace {

constexpr const char* kHead =
    "# Figures\n"
    "\n"
    "`tierd --figures` prints this page. Each figure is declared once, in the code (`core/report/figure.h`); "
    "texts, JSON and\n"
    "`/metrics` follow from the declarations. NAME in a path stands for a name of the run, such as that of a "
    "tier, and N for\n"
    "the place in a list. A figure is absent, or null, where it does not apply.\n"
    "\n"
    "The column *adds* says how the figure of two runs, or of two parts of one, is made of theirs: their "
    "*sum*, the\n"
    "*greatest*, the *latest*, or *derived* anew from the figures that were added.\n";

template <typename Figures>
std::string table(std::string_view title, const Figures& figures) {
  std::string text = fmt::format("\n## {}\n\n| figure | unit | adds | meaning |\n|---|---|---|---|\n", title);
  for (const auto& figure : figures) {
    text += fmt::format("| `{}` | {} | {} | {} |\n", figure.path, name(figure.unit), name(figure.adds),
                        figure.help);
  }
  return text;
}

template <HasFigures T>
std::string table_of(std::string_view title) {
  std::vector<DeclaredFigure> figures;
  list_figures<T>("", figures);
  return table(title, figures);
}

}  // namespace

std::string figures_page() {
  return kHead + table_of<RunFigures>("`report` of `tierd -p TEXT --json`") +
         table_of<CheckFigures>("`tierd --check --json`") + table_of<ServedTiers>("`GET /v1/tiers`") +
         table("`GET /metrics`", declared_metrics()) + table_of<BenchFigures>("`tier bench -o json`") +
         table("Header of a trace", header_figures());
}

}  // namespace tierd
