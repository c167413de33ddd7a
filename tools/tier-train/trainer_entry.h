// What the trainer's shared object exports. It is C++ and belongs to the program that it was built with.
#pragma once

#include <memory>

#include "tools/tier-train/distiller.h"

namespace tierd {

inline constexpr const char* kTrainerFile = "trainer-torch.so";

inline constexpr const char* kDistillerSymbol = "tierd_make_distiller";
using DistillerEntry = void(const Network& network, const DistillerOptions& options,
                            Result<std::unique_ptr<Distiller>>& made);

}  // namespace tierd
