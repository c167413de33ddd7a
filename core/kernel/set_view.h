// The kernel's sets as views for plugins.
#pragma once

#include "core/kernel/active_set.h"
#include "core/kernel/site.h"
#include "tierd/views.h"

namespace tierd {

// Returns a set of `n` neurons; `idx` NULL: all. The view refers to `idx`.
inline tierd_set_view set_view(SiteId site, const uint32_t* idx, uint32_t n, uint32_t rows, uint8_t kind) {
  tierd_set_view view{};
  view.size = sizeof view;
  view.site = site;
  view.edition = TIERD_NO_EDITION;
  view.rows = rows;
  view.n = n;
  view.kind = kind;
  view.known = TIERD_KNOWN_ALL;
  view.idx = idx;
  return view;
}
inline tierd_set_view set_view(SiteId site, const ActiveSet& set, uint32_t rows, uint8_t kind) {
  tierd_set_view view = set_view(site, set.indices(), set.size(), rows, kind);
  view.row_mask = set.row_masks();
  view.score = set.scores();
  return view;
}
// For caches: returns neurons of an edition.
inline tierd_set_view edition_set(EditionId number, const Edition& edition, const uint32_t* idx, uint32_t n,
                                  uint32_t rows, uint8_t kind) {
  tierd_set_view view = set_view(edition.owner, idx, n, rows, kind);
  view.edition = number;
  return view;
}
inline tierd_set_view edition_set(EditionId number, const Edition& edition, const ActiveSet& set,
                                  uint32_t rows, uint8_t kind) {
  tierd_set_view view = set_view(edition.owner, set, rows, kind);
  view.edition = number;
  return view;
}

}  // namespace tierd
