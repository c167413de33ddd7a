// The routing of a mixture as recorded by other programs: CSV or JSON lines.
#include "tools/lab/activity/routing.h"

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
  for (const uint64_t bytes : routing->expert_bytes) TIERD_CHECK(bytes <= kMostExpertBytes);
  for (const auto* tokens : {&routing->prompt, &routing->generated}) {
    for (const Routing::Token& token : *tokens) {
      for (const Routing::Choice& choice : token) {
        TIERD_CHECK(choice.layer < routing->layers && !choice.experts.empty());
        for (const uint32_t expert : choice.experts) TIERD_CHECK(expert < routing->experts);
      }
    }
  }
}

}  // namespace tierd
