// The kernel's sites and editions as views for plugins.
#pragma once

#include <vector>

#include "core/kernel/site.h"
#include "tierd/views.h"

namespace tierd {

static_assert(kNoSiteId == TIERD_NO_SITE && kNoEdition == TIERD_NO_EDITION &&
              kNoExpertNumber == TIERD_NO_EXPERT);

// The view refers to `site` and `editions`, the site's editions as the receiver's memory holds them.
inline tierd_site_view site_view(SiteId number, const Site& site, const std::vector<EditionId>& editions) {
  tierd_site_view view{};
  view.size = sizeof view;
  view.site = number;
  view.name = site.name.c_str();
  view.layer = site.layer;
  view.op_group = site.op_group;
  view.layer_group = site.layer_group;
  view.axis = site.label;
  view.given = site.given() || site.chosen() ? 1 : 0;
  view.n = site.n;
  view.n_in = site.n_in;
  view.n_out = site.n_out;
  view.n_editions = static_cast<uint32_t>(editions.size());
  view.editions = editions.data();
  view.expert = site.expert;
  view.never_silent = site.never_silent ? 1 : 0;
  return view;
}

inline tierd_edition_view edition_view(EditionId number, const Edition& edition) {
  tierd_edition_view view{};
  view.size = sizeof view;
  view.edition = number;
  view.site = edition.owner;
  view.n = edition.n;
  view.bytes = edition.slot_bytes;
  view.encoding = edition.label;
  return view;
}

}  // namespace tierd
