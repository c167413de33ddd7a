// A place where weights may be used sparsely: (layer, operator group), and the editions in which its weights
// are stored. The kernel knows shapes and bytes, nothing of what is computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/kernel/flow.h"

namespace tierd {

using SiteId = uint32_t;
inline constexpr SiteId kNoSiteId = UINT32_MAX;
using EditionId = uint32_t;
inline constexpr EditionId kNoEdition = UINT32_MAX;
inline constexpr uint32_t kNoExpertNumber = UINT32_MAX;

// All neurons of a site in one form: what is stored, fetched, kept and computed from. Residency, arena
// slots and a cache's decisions are an edition's. Sites that share their weights (a tied embedding and its
// head) share the edition.
//
// An edition may be made of another one, neuron by neuron, while it is fetched: the dense one of bitmaps,
// which stands in the place of that one, or one of fewer bits, which its sites have beside that one. It is
// nowhere in the store, and some memories hold it where others hold what it is made of (Memory::held).
struct Edition {
  SiteId owner = kNoSiteId;        // of the sites that have it, the one that every step uses whole
  uint16_t label = 0;              // of that form, as plugins are told: the kernel does not look at it
  uint32_t n = 0;                  // neurons
  uint32_t slot_bytes = 0;         // of an arena slot; a multiple of 4096, where results are added of 64
  EditionId made_of = kNoEdition;  // another edition, whose extents are this one's; kNoEdition: it is stored
  uint32_t first_extent = 0;       // neuron i is extent first_extent + stride * i
  uint32_t stride = 1;             // more than 1: the extents between belong to other editions
  std::vector<uint32_t> bytes;     // [n] of weights in neuron i, without padding

  uint32_t extent_of(uint32_t neuron) const { return first_extent + stride * neuron; }
  uint32_t neuron_of(uint32_t extent) const { return (extent - first_extent) / stride; }
};

// A matrix of floats with a row for each row of the batch, in the activations of each computing unit.
struct ActivationPlace {
  static constexpr uint32_t kNowhere = UINT32_MAX;
  uint32_t offset = kNowhere;  // in 64 B
  uint32_t stride = 0;         // floats from one row to the next

  bool there() const { return offset != kNowhere; }
};

// Which rows of a batch pass a site: those for which a segment before it has written something other than 0
// in this column of a buffer.
struct RowChoice {
  ActivationPlace place;
  uint32_t column = 0;
};

struct Site {
  std::string name;
  uint16_t layer = UINT16_MAX;
  uint16_t op_group = 0;
  uint16_t layer_group = 0;  // of layers whose neurons of one number lie side by side; else of this one alone
  uint8_t label = 0;         // how it is cut, as plugins are told: the kernel does not look at it
  // Results of neurons are added up, in the order of their numbers; else each has a place of its own.
  bool added = false;
  uint32_t run = 1;  // so many neurons, by number, are summed by themselves before they are added
  // Whose operator it is, of a mixture's expert that is cut into neurons: a step passes only the experts that
  // some row uses, with those rows.
  uint32_t expert = kNoExpertNumber;
  RowChoice rows = {};  // where there is an expert
  // Who says what is active: a predictor; the caller, with the pass (token ids); or the segment before (a
  // router, see `choice`).
  enum class Set : uint8_t { predicted, given, chosen } set = Set::predicted;
  bool never_silent = false;  // each neuron gives something to every row; false: some may not, or unknown
  uint32_t n = 0;             // neurons
  uint32_t n_in = 0;
  uint32_t n_out = 0;
  // Those that a pass may want, at least one; the best first.
  std::vector<EditionId> editions = {};
  Flow flow = {};  // which units have, and take, the activations below
  // What it computes from, [rows x n_in], once the segment before it has run.
  ActivationPlace input = {};
  // What its neurons give, [rows x n_out], before the segment after has run.
  ActivationPlace output = {};
  // Which neurons each row uses, [rows x n], written by the segment before; 0: it does not use it. Where the
  // set is chosen.
  ActivationPlace choice = {};
  // How much each neuron gives to the result, [rows x n], written by messages with kMeasure; 0: it is not
  // active. Only sites that can tell have it.
  ActivationPlace contribution = {};

  bool given() const { return set == Set::given; }
  bool chosen() const { return set == Set::chosen; }
  bool of_expert() const { return expert != kNoExpertNumber; }
};

// The sites of a model in the order of one step, and the editions that they have: those that are stored in
// the order of their owners, then those that are made of them. Immutable once a run has begun.
struct SiteTable {
  std::vector<Site> all;
  std::vector<Edition> editions;

  size_t size() const { return all.size(); }
  Site& operator[](SiteId site) { return all[site]; }
  const Site& operator[](SiteId site) const { return all[site]; }
  auto begin() const { return all.begin(); }
  auto end() const { return all.end(); }
  uint32_t most_neurons() const {  // of a site
    uint32_t most = 0;
    for (const Site& site : all) most = std::max(most, site.n);
    return most;
  }
  // The edition that a quantizer which says nothing means.
  EditionId best(SiteId site) const { return all[site].editions.front(); }
  const Edition& best_of(SiteId site) const { return editions[best(site)]; }
  // The edition that a pass of the site would want where a memory holds this one; kNoEdition: it is none of
  // the site's.
  EditionId wanted(SiteId site, EditionId edition) const {
    const auto has = [&](EditionId of) { return std::ranges::count(all[site].editions, of) != 0; };
    if (has(edition)) return edition;
    if (edition >= editions.size() || !has(editions[edition].made_of)) return kNoEdition;
    return editions[edition].made_of;
  }
};

}  // namespace tierd
