#include "tools/lab/planted/channel_profile.h"

#include "core/base/named_toml.h"
#include "core/base/toml_fields.h"
#include "tools/lab/planted/profile.h"

namespace tierd {

Result<std::optional<ChannelProfile>> read_channel_profile(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_named_toml(planted_profiles_folder(), name, "sparsity profile"));
  if (file.table.contains("activity")) return std::optional<ChannelProfile>();
  ChannelProfile p;
  p.name = file.path.stem().string();
  TomlFields fields(file.table, file.path.string());
  // Lower bounds: with a < 1 or b < 1 most channels would be always or never among the larger half, and the
  // factors of channels that always are have no mean square.
  TomlFields rates = fields.table("rates");
  p.a = rates.number("a", 1, 1000);
  p.b = rates.number("b", 2, 1000);
  rates.end();
  TomlFields hidden = fields.table("hidden");
  p.cosine = hidden.number("cosine", 0.1, 0.9999);
  hidden.end();
  TomlFields attention = fields.table("attention");
  p.score_variance = attention.number("score_variance", 0, 100);
  attention.end();
  fields.end();
  TIERD_TRY(fields.status());
  return std::optional(p);
}

}  // namespace tierd
