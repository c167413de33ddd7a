// A model's configuration and vocabulary as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "core/base/json_fields.h"
#include "core/base/result.h"
#include "core/model/config.h"
#include "core/model/text/vocab.h"

namespace tierd {

nlohmann::ordered_json to_json(const ModelConfig& config);
Status from_json(const JsonFields& fields, ModelConfig& config);

// Scores are written as the 32 bits of the float, so that none is rounded and infinities survive.
nlohmann::ordered_json to_json(const Vocab& vocab);
Status from_json(const JsonFields& fields, Vocab& vocab);

}  // namespace tierd
