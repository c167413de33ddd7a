// The evaluation of a partition, as figures and as text.
#pragma once

#include <optional>
#include <string>

#include "core/report/figure.h"
#include "tools/lab/partition/methods.h"

namespace tierd {

// Times are those of a token.
struct PartitionFigures {
  PartitionMethod method = PartitionMethod::ilp;
  double objective_ms = 0, bound_ms = 0, gap = 0, seconds = 0;
  std::optional<double> ilp_ms, greedy_ms, random_ms;
  uint64_t bins = 0, sites = 0, neurons = 0, neuron_bytes = 0, dimms = 0;
  bool homes_in_program = false;
  uint64_t gpu_bytes = 0, gpu_capacity_bytes = 0, fullest_dimm_bytes = 0, dimm_capacity_bytes = 0;
  double dimm_max_over_mean = 0;

  static constexpr auto figures() {
    using F = PartitionFigures;
    return std::tuple(
        Figure{&F::method, "method", Quantity::text, Adds::latest, "of the partition"},
        Figure{&F::objective_ms, "objective_ms", Quantity::ms, Adds::latest, "of the partition"},
        Figure{&F::bound_ms, "bound_ms", Quantity::ms, Adds::latest, "no partition is faster"},
        Figure{&F::gap, "gap", Quantity::share, Adds::latest, "of the objective above the bound"},
        Figure{&F::seconds, "seconds", Quantity::seconds, Adds::latest, "of the search"},
        Figure{&F::ilp_ms, "ilp_ms", Quantity::ms, Adds::latest, "by the integer program", true},
        Figure{&F::greedy_ms, "greedy_ms", Quantity::ms, Adds::latest, "by the greedy method", true},
        Figure{&F::random_ms, "random_ms", Quantity::ms, Adds::latest, "at random", true},
        Figure{&F::bins, "bins", Quantity::count, Adds::latest, "of the program; 0: none was solved"},
        Figure{&F::homes_in_program, "homes_in_program", Quantity::flag, Adds::latest, "else dealt (LPT)"},
        Figure{&F::sites, "sites", Quantity::count, Adds::latest, "with frequencies"},
        Figure{&F::neurons, "neurons", Quantity::count, Adds::latest, "of all sites"},
        Figure{&F::neuron_bytes, "neuron_bytes", Quantity::bytes, Adds::latest, "of all neurons"},
        Figure{&F::gpu_bytes, "gpu_bytes", Quantity::bytes, Adds::latest, "of hot neurons"},
        Figure{&F::gpu_capacity_bytes, "gpu_capacity_bytes", Quantity::bytes, Adds::latest, "for these"},
        Figure{&F::fullest_dimm_bytes, "fullest_dimm_bytes", Quantity::bytes, Adds::latest, "of neurons"},
        Figure{&F::dimm_capacity_bytes, "dimm_capacity_bytes", Quantity::bytes, Adds::latest, "of each"},
        Figure{&F::dimms, "dimms", Quantity::count, Adds::latest, "of the machine"},
        Figure{&F::dimm_max_over_mean, "dimm_max_over_mean", Quantity::ratio, Adds::latest,
               "of the busiest DIMM of a site"});
  }
};

PartitionFigures partition_figures(const PartitionProblem& problem, PartitionMethod method,
                                   const PartitionResult& result);
std::string partition_text(const PartitionFigures& partition);

}  // namespace tierd
