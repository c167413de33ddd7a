// The kernel's sites as plugins see them.
#pragma once

#include "core/kernel/site.h"
#include "tierd/views.h"

namespace tierd {

static_assert(kNoSiteId == TIERD_NO_SITE);

// The one encoding in which a site is stored.
inline tierd_encoding_view encoding_view(const Site& site) {
  return {site.encoding, 0, site.slot_bytes};
}

// Lives as long as `site` and `encoding`.
inline tierd_site_view site_view(SiteId number, const Site& site, const tierd_encoding_view& encoding) {
  tierd_site_view view{};
  view.size = sizeof view;
  view.site = number;
  view.alias_of = site.domain == number ? TIERD_NO_SITE : site.domain;
  view.name = site.name.c_str();
  view.layer = site.layer;
  view.op_group = site.op_group;
  view.layer_group = site.layer_group;
  view.axis = site.slicing;
  view.given = site.given() || site.chosen() ? 1 : 0;
  view.n = site.n;
  view.n_in = site.n_in;
  view.n_out = site.n_out;
  view.n_enc = 1;
  view.enc = &encoding;
  return view;
}

}  // namespace tierd
