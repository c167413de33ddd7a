#include "tools/tierd/drafters.h"

#include <fmt/format.h>

#include <utility>

#include "core/run/prepare_run.h"

namespace tierd {
namespace {

Result<std::unique_ptr<Runtime>> start_model(const RunPlan& plan, uint32_t texts, bool quiet) {
  Config config;
  config.model = plan.config.speculation.model;
  config.threads = plan.config.threads;
  config.bind = plan.config.bind;
  config.plugin_path = plan.config.plugin_path;
  config.sequences = texts;
  RuntimeOptions options;
  options.quiet = quiet;
  TIERD_ASSIGN(RunPlan draft, prepare_run(config, options));
  const Manifest& ours = plan.store.manifest();
  const Manifest& theirs = draft.store.manifest();
  if (ours.config.vocab_size != theirs.config.vocab_size) {
    return Error{
        Code::invalid_argument, "--model-draft",
        fmt::format("{} has a vocabulary of {} tokens, but the model has {}; expected the same vocabulary",
                    config.model, theirs.config.vocab_size, ours.config.vocab_size)};
  }
  TIERD_ASSIGN(std::unique_ptr<Runtime> runtime, Runtime::create(std::move(draft), options));
  TIERD_TRY(runtime->load());
  return runtime;
}

}  // namespace

std::vector<Drafter*> Drafters::list() const {
  std::vector<Drafter*> drafters;
  for (const auto& drafter : each) drafters.push_back(drafter.get());
  return drafters;
}

Result<Drafters> start_drafters(const RunPlan& plan, uint32_t texts, bool quiet) {
  const SpeculationConfig& speculation = plan.config.speculation;
  Drafters drafters;
  if (!speculation.model.empty()) {
    auto model = start_model(plan, texts, quiet);
    if (!model.ok()) return model.error().below("speculation.model");
    drafters.model = std::move(*model);
  }
  for (uint32_t text = 0; text < texts && speculation.guesses(); ++text) {
    if (drafters.model != nullptr)
      drafters.each.push_back(std::make_unique<ModelDrafter>(drafters.model->engine(), text));
    else
      drafters.each.push_back(std::make_unique<PromptLookup>());
  }
  return drafters;
}

}  // namespace tierd
