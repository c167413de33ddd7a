// What a configuration loses on a text, against one that leaves nothing out.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/result.h"
#include "core/engine/engine.h"
#include "tools/evaluation/loss.h"

namespace tierd {

// Passes the windows through both. `progress` hears of tokens. Errors: those of Engine::step.
Result<Loss> compare_on(Engine& reference, Engine& subject, const std::vector<std::vector<uint32_t>>& windows,
                        const std::function<void(uint64_t)>& progress);

}  // namespace tierd
