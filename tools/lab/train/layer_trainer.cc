#include "tools/lab/train/layer_trainer.h"

#include "tools/lab/train/trainer_entry.h"
#include "tools/lab/train/trainer_library.h"

namespace tierd {

Result<TrainLayer> load_trainer() {
  TIERD_ASSIGN(void* const symbol, trainer_symbol("predictor", kTrainerSymbol));
  const auto entry = reinterpret_cast<TrainerEntry*>(symbol);
  return TrainLayer([entry](const LayerTask& task, const TrainOptions& options) {
    Result<LowRank> trained = LowRank{};
    entry(task, options, trained);
    return trained;
  });
}

}  // namespace tierd
