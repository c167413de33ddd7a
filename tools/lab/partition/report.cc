#include "tools/lab/partition/report.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace tierd {
namespace {

std::optional<double> milliseconds(const std::optional<double>& seconds) {
  return seconds ? std::optional(*seconds * 1e3) : std::nullopt;
}

std::string row(std::string_view method, const std::optional<double>& ms, double bound) {
  if (!ms) return {};
  return fmt::format("{:<8} {:>14.7g} {:>10.4f}\n", method, *ms, *ms > 0 ? 100 * (1 - bound / *ms) : 0.0);
}

std::string bytes_of(uint64_t part, uint64_t whole) {
  return fmt::format("{} of {}", format_bytes(static_cast<double>(part)),
                     format_bytes(static_cast<double>(whole)));
}

}  // namespace

PartitionFigures partition_figures(const PartitionProblem& problem, PartitionMethod method,
                                   const PartitionResult& result) {
  const PartitionMachine& machine = problem.machine;
  PartitionFigures figures{.method = method,
                           .objective_ms = result.cost.seconds * 1e3,
                           .bound_ms = result.bound * 1e3,
                           .gap = result.gap(),
                           .seconds = result.seconds,
                           .ilp_ms = milliseconds(result.ilp),
                           .greedy_ms = milliseconds(result.greedy),
                           .random_ms = milliseconds(result.random),
                           .bins = result.bins,
                           .sites = problem.sites.size(),
                           .neuron_bytes = problem.all_bytes(),
                           .dimms = machine.dimms,
                           .homes_in_program = result.homes,
                           .gpu_bytes = result.cost.gpu_bytes,
                           .gpu_capacity_bytes = machine.gpu_bytes,
                           .fullest_dimm_bytes = result.cost.dimm_bytes,
                           .dimm_capacity_bytes = machine.dimm_bytes,
                           .dimm_max_over_mean = result.cost.imbalance};
  for (const PartitionSite& site : problem.sites) figures.neurons += site.frequency.size();
  return figures;
}

std::string partition_text(const PartitionFigures& p) {
  std::string text = fmt::format("{} neurons of {} sites, {}; {} DIMMs\n\n", p.neurons, p.sites,
                                 format_bytes(static_cast<double>(p.neuron_bytes)), p.dimms);
  text += fmt::format("{:<8} {:>14} {:>10}\n", "method", "objective, ms", "gap, %");
  text += row("ilp", p.ilp_ms, p.bound_ms) + row("greedy", p.greedy_ms, p.bound_ms) +
          row("random", p.random_ms, p.bound_ms);
  text += fmt::format("{:<8} {:>14.7g}\n\n", "bound", p.bound_ms);
  text += fmt::format("taken: {:.7g} ms, gap {:.4f} %, found in {:.2f} s", p.objective_ms, 100 * p.gap,
                      p.seconds);
  if (p.bins != 0) {
    text += fmt::format("; the program has {} bins{}", p.bins,
                        p.homes_in_program ? " and the homes" : ", homes are dealt (LPT)");
  }
  text += fmt::format("\non the GPU: {}\n", bytes_of(p.gpu_bytes, p.gpu_capacity_bytes));
  text += fmt::format("fullest DIMM: {}\n", bytes_of(p.fullest_dimm_bytes, p.dimm_capacity_bytes));
  return text + fmt::format("busiest DIMM of a site: {:.4f} of the mean\n", p.dimm_max_over_mean);
}

}  // namespace tierd
