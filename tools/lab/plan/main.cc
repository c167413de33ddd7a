// tier-plan: finds the settings of a run for a budget, by the cost model of ActiveFlow and measured rates of
// this machine.
#include <fmt/format.h>

#include "core/base/log.h"
#include "core/base/standard_streams.h"
#include "core/report/figure_json.h"
#include "core/run/prepare_run.h"
#include "tools/command_line/exit_code.h"
#include "tools/evaluation/model_arguments.h"
#include "tools/lab/plan/plan.h"

namespace tierd {
namespace {

constexpr const char* kAbout =
    "Measures this machine's disk and memory for two seconds, and finds for a budget the share of channels "
    "to leave out, the\n"
    "layers of a group, the mask and the cache with which a model in channels would be fastest, and whether "
    "reading it whole\n"
    "would be faster. Of a mixture, it compares whole experts with experts in channels. Ends with the flags "
    "for tierd.\n"
    "\n"
    "  tier plan --config configs/activeflow.toml -m model/ --set tiers.dram.capacity=3GB\n"
    "\n"
    "The model's store is made if there is none. Exit status: 0; 1 if a disk or an output failed; 2 if an "
    "argument cannot be\n"
    "used, with one line on standard error that says why.\n";

struct Options {
  ModelArguments model;
  double sparsity = 0, hits = 0, similarity = 0;
  PlanAssumptions assumed;
  bool json = false;
};

Status plan(const Options& options) {
  TIERD_ASSIGN(const Config config, options.model.config());
  RuntimeOptions asked;
  asked.shorten = true;  // as tierd does, so that the plan is of the same run
  asked.fit = options.model.fit();
  asked.quiet = options.model.quiet();
  TIERD_ASSIGN(const RunPlan of, prepare_run(config, asked));
  for (const std::string& line : of.fitted) {
    if (!options.model.quiet()) say(line);
  }
  TIERD_ASSIGN(const FoundPlan found, find_plan(of, options.assumed));
  return write_output(options.json ? figures::value_json(found).dump(2) + "\n" : plan_text(found));
}

int run(int argc, char** argv) {
  Options options;
  CommandLine line("tier-plan", kAbout);
  options.model.declare(line);
  constexpr double kMost = 0.999;
  const Argument sparsity = line.option("--sparsity", options.sparsity,
                                        "the share of channels to leave out; else what the budget requires")
                                .between(0.0, kMost)
                                .named("X");
  const Argument hits =
      line.option("--hits", options.hits,
                  "the share of the used channels in the cache; else the share that it holds")
          .between(0.0, kMost)
          .named("X");
  const Argument similarity =
      line.option("--similarity", options.similarity,
                  "the share of the used channels that the layers before predict; else as the "
                  "predictor's tables say, or 0.8 (the paper)")
          .between(0.0, kMost)
          .named("X");
  line.option("--least-gain", options.assumed.least_gain,
              "groups grow while another layer gains at least this share")
      .between(0.0, kMost)
      .named("X")
      .shows_default();
  line.flag("--json", options.json, "print JSON");
  if (const auto status = line.parse(argc, argv)) return *status;
  if (sparsity.given()) options.assumed.sparsity = options.sparsity;
  if (hits.given()) options.assumed.hits = options.hits;
  if (similarity.given()) options.assumed.similarity = options.similarity;
  const Status done = plan(options);
  return done.ok() ? 0 : fail(done.error(), exit_code(done.error()));
}

}  // namespace
}  // namespace tierd

int main(int argc, char** argv) {
  tierd::prepare_standard_streams();
  return tierd::run(argc, argv);
}
