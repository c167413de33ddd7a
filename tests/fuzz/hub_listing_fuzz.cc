// A model hub's list of files, and the choice among them.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"
#include "tools/tierd/hub/choice.h"
#include "tools/tierd/hub/repository.h"

namespace tierd {

void fuzz(std::string_view input) {
  const std::string quant(take_text(input));
  const auto listing = parse_listing(input, "hub");
  if (!listing.ok()) return expect_one_line(listing.error(), "hub");
  TIERD_CHECK(is_hash(listing->commit, 40));
  std::vector<std::string> names;
  for (const HubFile& file : listing->files) {
    TIERD_CHECK(is_safe_name(file.name));
    TIERD_CHECK(file.hash.empty() || is_hash(file.hash, 40) || is_hash(file.hash, 64));
    names.push_back(file.name);
  }
  const auto asked = parse_hub_request("a/b" + (quant.empty() ? "" : ":" + quant), "");
  if (!asked.ok()) return;
  const auto choice = choose_files(names, *asked, "hub");
  if (!choice.ok()) return expect_one_line(choice.error(), "hub");
  TIERD_CHECK(!choice->files.empty());
  for (const std::string& name : choice->files) TIERD_CHECK(std::ranges::find(names, name) != names.end());
}

}  // namespace tierd
