#include "tools/lab/train/write_routers.h"

#include <fmt/format.h>

#include <span>
#include <vector>

#include "tools/lab/safetensors/safetensors_writer.h"

namespace tierd {

Status write_routers(const TensorSource& source, const std::string& path) {
  const ModelConfig& config = source.config();
  if (!config.is_mixture()) {
    return Error{Code::unsupported, source.path(),
                 fmt::format("architecture '{}' has no experts, and no routers", config.architecture)};
  }
  std::vector<SafetensorsEntry> entries;
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    if (!config.has_experts(n)) continue;
    entries.push_back(
        {fmt::format("layers.{}.experts.router", n), "F32", {config.n_experts, config.d_model}});
  }
  TIERD_ASSIGN(SafetensorsWriter writer,
               SafetensorsWriter::create(path, entries, {{kMadeFor, shape_text(config)}}));
  for (uint32_t n = 0; n < config.n_layers; ++n) {
    if (!config.has_experts(n)) continue;
    TIERD_ASSIGN(const auto router, source.read_f32(*source.find(fmt::format("layers.{}.router", n))));
    TIERD_TRY(writer.append(std::as_bytes(std::span(router))));
  }
  return writer.finish();
}

}  // namespace tierd
