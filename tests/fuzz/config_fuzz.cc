// A configuration file, NUL, and the argument of --set. It may have several errors, each on a line.
#include "core/config/config.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/base/units.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {
namespace {

void expect_lines(const Error& error, const std::string& path) {
  const std::string text = error.line();
  std::string_view rest = text;
  for (size_t left = 1 + error.more.size(); left > 0; --left) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    TIERD_CHECK_MSG(line.starts_with(path) || line.starts_with("--set"), text);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  TIERD_CHECK_MSG(rest.empty(), text);
}

}  // namespace

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const std::string path = folder.write("config.toml", take_text(input));
  std::vector<std::string> overrides;
  if (!input.empty()) overrides.emplace_back(input);
  auto config = load_config(path, overrides);
  if (!config.ok()) return expect_lines(config.error(), path);
  const auto bytes = parse_bytes(config->tier("dram").staging, "tiers.dram.staging");
  if (!bytes.ok()) expect_one_line(bytes.error(), "tiers.dram.staging");
}

}  // namespace tierd
