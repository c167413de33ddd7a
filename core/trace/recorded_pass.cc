#include "core/trace/recorded_pass.h"

#include <fmt/format.h>

namespace tierd {

Status check_pass(const PassBegins& begins, const TraceReader& trace) {
  const std::vector<Site>& sites = trace.header().sites;
  const auto fail = [&](const std::string& what) {
    return Error{Code::corrupt, trace.path(), fmt::format("event {}: {}", trace.position(), what)};
  };
  if (begins.site >= sites.size()) return fail(fmt::format("site {} of {}", begins.site, sites.size()));
  const Site& site = sites[begins.site];
  if (site.given != begins.given.has_value())
    return fail("a set is given where none belongs, or none where one does");
  if (begins.given) {
    for (size_t i = 0; i < begins.given->size(); ++i) {
      const uint32_t neuron = (*begins.given)[i];
      if (neuron >= site.n || (i > 0 && neuron <= (*begins.given)[i - 1]))
        return fail(fmt::format("no neuron of {}, or out of order: {}", site.name, neuron));
    }
  }
  if (begins.sequences.size() != begins.rows)
    return fail(fmt::format("the sequences of {} rows, of {}", begins.sequences.size(), begins.rows));
  if (begins.step == kNoStep) return fail("a step without a number");
  return {};
}

RecordedPass::RecordedPass(const PassBegins& begins)
    : sequences_(begins.sequences.begin(), begins.sequences.end()),
      pass_{begins.step, begins.rows, begins.row_info, begins.bypass_caches, nullptr, sequences_} {
  if (!begins.given) return;
  given_ = ActiveSet::of(*begins.given);
  pass_.given = &given_;
}

}  // namespace tierd
