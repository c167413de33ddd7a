#include "tools/lab/planted/channel_profile.h"

#include "core/base/named_toml.h"
#include "core/base/toml_sections.h"
#include "tools/lab/planted/profile.h"

namespace tierd {

Result<std::optional<ChannelProfile>> read_channel_profile(const std::string& name) {
  TIERD_ASSIGN(const NamedToml file, read_named_toml(planted_profiles_folder(), name, "sparsity profile"));
  if (file.table.contains("activity")) return std::optional<ChannelProfile>();
  ChannelProfile p;
  p.name = file.path.stem().string();
  TomlSections reader(file.table, file.path.string());
  // Lower bounds: with a < 1 or b < 1 most channels would be always or never among the larger half, and the
  // factors of channels that always are have no mean square.
  reader.section("rates");
  reader.number("a", p.a, 1.0, 1000.0);
  reader.number("b", p.b, 2.0, 1000.0);
  reader.end_section();
  reader.section("hidden");
  reader.number("cosine", p.cosine, 0.1, 0.9999);
  reader.end_section();
  reader.section("attention");
  reader.number("score_variance", p.score_variance, 0.0, 100.0);
  reader.end_section();
  TIERD_TRY(reader.end());
  return std::optional(p);
}

}  // namespace tierd
