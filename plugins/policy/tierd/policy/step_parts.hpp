// The parts of a step, in order: its layers, and the sites before, between and after them. Optional; C++17,
// header-only.
#ifndef TIERD_POLICY_STEP_PARTS_HPP
#define TIERD_POLICY_STEP_PARTS_HPP

#include <cstdint>
#include <utility>
#include <vector>

#include "tierd/plugin.hpp"

namespace tierd {

// Sites that are placed, or read ahead, as a whole.
struct StepPart {
  bool is_layer = false;
  uint32_t first_site = 0;
  uint32_t end_site = 0;
  std::vector<uint32_t> editions;
};

struct StepParts {
  std::vector<StepPart> parts;  // in the order of a step
  // Editions of which a step uses one row for each token; no part contains them. The edition of an embedding
  // tied to the head belongs to the head.
  std::vector<uint32_t> embeddings;
};

inline StepParts step_parts(const Host& host) {
  StepParts step;
  for (uint32_t s = 0; s < host.n_sites(); ++s) {
    const tierd_site_view& site = host.site(s);
    const bool begins = s == 0 || site.layer != host.site(s - 1).layer;
    if (begins) step.parts.push_back({site.layer != TIERD_NO_LAYER, s, s, {}});
    step.parts.back().end_site = s + 1;
    const bool is_embedding = site.given != 0 && site.axis == TIERD_AXIS_ROW;
    for (uint32_t i = 0; i < site.n_editions; ++i) {
      const uint32_t e = site.editions[i];
      if (host.edition(e).site == s)
        (is_embedding ? step.embeddings : step.parts.back().editions).push_back(e);
    }
  }
  return step;
}

}  // namespace tierd
#endif
