#include "tools/lab/partition/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/units.h"

namespace tierd {
namespace {

using nlohmann::json;

json milliseconds(const std::optional<double>& seconds) {
  return seconds ? json(*seconds * 1e3) : json();
}

std::string row(const json& partition, const char* method) {
  const json& found = partition[fmt::format("{}_ms", method)];
  if (found.is_null()) return {};
  const auto ms = found.get<double>();
  const auto bound = partition["bound_ms"].get<double>();
  return fmt::format("{:<8} {:>14.7g} {:>10.4f}\n", method, ms, ms > 0 ? 100 * (1 - bound / ms) : 0.0);
}

}  // namespace

json partition_json(const PartitionProblem& problem, PartitionMethod method, const PartitionResult& result) {
  const PartitionMachine& machine = problem.machine;
  uint64_t neurons = 0;
  for (const PartitionSite& site : problem.sites) neurons += site.frequency.size();
  return {{"method", name(method)},
          {"objective_ms", result.cost.seconds * 1e3},
          {"bound_ms", result.bound * 1e3},
          {"gap", result.gap()},
          {"seconds", result.seconds},
          {"ilp_ms", milliseconds(result.ilp)},
          {"greedy_ms", milliseconds(result.greedy)},
          {"random_ms", milliseconds(result.random)},
          {"bins", result.bins},
          {"homes_in_program", result.homes},
          {"sites", problem.sites.size()},
          {"neurons", neurons},
          {"neuron_bytes", problem.all_bytes()},
          {"gpu_bytes", result.cost.gpu_bytes},
          {"gpu_capacity_bytes", machine.gpu_bytes},
          {"fullest_dimm_bytes", result.cost.dimm_bytes},
          {"dimm_capacity_bytes", machine.dimm_bytes},
          {"dimms", machine.dimms},
          {"dimm_max_over_mean", result.cost.imbalance}};
}

std::string partition_text(const json& p) {
  const auto bytes = [&](const char* key) { return format_bytes(p[key].get<double>()); };
  std::string text =
      fmt::format("{} neurons of {} sites, {}; {} DIMMs\n\n", p["neurons"].get<uint64_t>(),
                  p["sites"].get<uint64_t>(), bytes("neuron_bytes"), p["dimms"].get<uint32_t>());
  text += fmt::format("{:<8} {:>14} {:>10}\n", "method", "objective, ms", "gap, %");
  for (const char* method : {"ilp", "greedy", "random"}) text += row(p, method);
  text += fmt::format("{:<8} {:>14.7g}\n\n", "bound", p["bound_ms"].get<double>());
  text += fmt::format("taken: {:.7g} ms, gap {:.4f} %, found in {:.2f} s", p["objective_ms"].get<double>(),
                      100 * p["gap"].get<double>(), p["seconds"].get<double>());
  if (p["bins"] != 0) {
    text += fmt::format("; the program has {} bins{}", p["bins"].get<uint32_t>(),
                        p["homes_in_program"].get<bool>() ? " and the homes" : ", homes are dealt (LPT)");
  }
  text += fmt::format("\non the GPU: {} of {}\n", bytes("gpu_bytes"), bytes("gpu_capacity_bytes"));
  text += fmt::format("fullest DIMM: {} of {}\n", bytes("fullest_dimm_bytes"), bytes("dimm_capacity_bytes"));
  return text +
         fmt::format("busiest DIMM of a site: {:.4f} of the mean\n", p["dimm_max_over_mean"].get<double>());
}

}  // namespace tierd
