#include "core/run/prepare_run.h"

#include <memory>
#include <utility>

#include "core/run/runtime.h"
#include "core/store/cache_folder.h"
#include "core/store/compressed_plan.h"
#include "core/store/kept_stores.h"

namespace tierd {

Result<RunPlan> with_counted_store(RunPlan plan, const Config& config, RuntimeOptions& options) {
  const Manifest& planned = plan.store.manifest();
  if (planned.compression == Compression::none || plan.store.made() || !plan.source->has_weights())
    return plan;
  TIERD_ASSIGN(const WriteOptions write, store_options(config, options));
  TIERD_ASSIGN(Manifest counted, compressed_plan(*plan.source, planned, options.quiet, write.codec.get()));
  if (!compresses(counted))
    return compresses_nothing(config.compression, config.model, config.tokenizer, counted.config);
  options.counted = std::make_shared<const Manifest>(std::move(counted));
  return plan_run(config, options);
}

Result<RunPlan> with_store(RunPlan plan, const Config& config, const RuntimeOptions& options) {
  if (plan.store.made()) {
    mark_used(plan.store.directory());
    return plan;
  }
  const std::shared_ptr<const TensorSource> source = plan.source;
  if (!source->has_weights()) {
    if (config.execute == "trace") return plan;
    return Error{Code::unsupported, source->path(),
                 "is a shape without weights, which runs in virtual time only: set run.clock=model and "
                 "run.execute=trace, or make weights with tier synth"};
  }
  RuntimeOptions played;
  played.force = options.force;
  played.logit_rows = options.logit_rows;
  played.play_on = any_machine();
  // The played runtime is destroyed before the store is made, which needs the memory.
  TIERD_TRY(Runtime::create(std::move(plan), played));
  TIERD_ASSIGN(const WriteOptions write, store_options(config, options));
  TIERD_TRY(store_for(*source, write));
  return plan_run(config, options);
}

Result<RunPlan> prepare_run(const Config& config, const RuntimeOptions& options) {
  TIERD_ASSIGN(RunPlan plan, plan_run(config, options));
  return with_store(std::move(plan), config, options);
}

}  // namespace tierd
