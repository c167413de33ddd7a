// The routing of a mixture, as other programs record it: CSV, or JSON lines.
#include "tools/tier-trace/routing.h"

#include "core/base/check.h"
#include "tests/fuzz/input_folder.h"
#include "tests/fuzz/promises.h"
#include "tests/fuzz/target.h"

namespace tierd {

void fuzz(std::string_view input) {
  static const InputFolder folder;
  const std::string path = folder.write("routing", input);
  const auto routing = read_routing(path, 0);
  if (!routing.ok()) return expect_one_line(routing.error(), path);
  for (const auto* tokens : {&routing->prompt, &routing->generated}) {
    for (const Routing::Token& token : *tokens) {
      TIERD_CHECK(token.size() == routing->layers);
      for (const std::vector<uint32_t>& experts : token)
        for (const uint32_t expert : experts) TIERD_CHECK(expert < routing->experts);
    }
  }
}

}  // namespace tierd
