// What the trainer's shared object exports. It is C++ and belongs to the program that it was built with.
#pragma once

#include <memory>

#include "tools/lab/train/distiller.h"
#include "tools/lab/train/layer_trainer.h"

namespace tierd {

inline constexpr const char* kTrainerFile = "trainer-torch.so";

inline constexpr const char* kTrainerSymbol = "tierd_train_layer";
using TrainerEntry = void(const LayerTask& task, const TrainOptions& options, Result<LowRank>& trained);

inline constexpr const char* kDistillerSymbol = "tierd_make_distiller";
using DistillerEntry = void(const Network& network, const DistillerOptions& options,
                            Result<std::unique_ptr<Distiller>>& made);

}  // namespace tierd
