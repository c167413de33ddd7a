#include "core/formats/hf_config.h"

#include <fmt/format.h>

#include "core/base/file.h"
#include "core/base/json_fields.h"
#include "core/base/log.h"
#include "core/formats/hf_families.h"
#include "core/formats/hf_fields.h"

namespace tierd {
namespace {

// gpt-oss is published in MXFP4, which is read as it is.
Status check_quantization(const JsonFields& f, const std::string& model_type) {
  if (!f.has("quantization_config")) return {};
  TIERD_ASSIGN(const JsonFields how, f.object("quantization_config"));
  TIERD_ASSIGN(const std::string method, how.text("quant_method", ""));
  if (model_type == "gpt_oss" && method == "mxfp4") return {};
  return f.error(
      Code::unsupported, "quantization_config",
      fmt::format("checkpoints quantized by {} are not supported; convert the model to BF16, F16 or "
                  "GGUF",
                  method.empty() ? "an unnamed method" : method));
}

}  // namespace

Result<ModelConfig> read_hf_config(const std::string& path) {
  TIERD_ASSIGN(const nlohmann::json root, read_json_file(path, kMaxConfigBytes));
  TIERD_ASSIGN(JsonFields f, JsonFields::of(root, path));
  ModelConfig c;
  TIERD_ASSIGN(c.architecture, f.text("model_type"));
  const HfFamily* family = find_hf_family(c.architecture);
  if (family == nullptr && f.has("text_config")) {  // of a model that also reads images
    const std::string whole = c.architecture;
    TIERD_ASSIGN(f, f.object("text_config"));
    TIERD_ASSIGN(c.architecture, f.text("model_type"));
    family = find_hf_family(c.architecture);
    if (family != nullptr)
      say_once(fmt::format("{}: {} is read as its text model, {}; it cannot be given images", path, whole,
                           c.architecture));
  }
  if (family == nullptr) {
    return f.error(Code::unsupported, "model_type",
                   fmt::format("\"{}\", supported are {}", c.architecture, hf_family_names()));
  }
  TIERD_TRY(check_quantization(f, c.architecture));
  TIERD_TRY(family->read(f, c));
  TIERD_TRY(read_hf_layer_types(f, c));
  TIERD_TRY(validate(c, path));
  return c;
}

}  // namespace tierd
