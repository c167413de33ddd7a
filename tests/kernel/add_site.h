// Builds tables of sites for tests.
#pragma once

#include <utility>

#include "core/kernel/site.h"

namespace tierd {

// Appends `edition` as an edition that the site owns; sets its owner and shape.
inline void add_edition(SiteTable& sites, SiteId owner, Edition edition) {
  edition.owner = owner;
  edition.n = sites[owner].n;
  sites[owner].editions.push_back(static_cast<EditionId>(sites.editions.size()));
  sites.editions.push_back(std::move(edition));
}
// Appends a site with that edition.
inline void add_site(SiteTable& sites, Site site, Edition edition) {
  site.editions.clear();
  sites.all.push_back(std::move(site));
  add_edition(sites, static_cast<SiteId>(sites.size() - 1), std::move(edition));
}

}  // namespace tierd
