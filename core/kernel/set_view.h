// The kernel's sets as plugins see them.
#pragma once

#include "core/kernel/active_set.h"
#include "core/kernel/site.h"
#include "tierd/views.h"

namespace tierd {

// Lives as long as `set`.
inline tierd_set_view set_view(SiteId site, const ActiveSet& set, uint32_t rows, uint8_t kind) {
  tierd_set_view view{};
  view.size = sizeof view;
  view.site = site;
  view.rows = rows;
  view.n = set.size();
  view.kind = kind;
  view.known = TIERD_KNOWN_ALL;
  view.idx = set.indices();
  return view;
}

}  // namespace tierd
