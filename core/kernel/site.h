// A site, (layer, operator group), is a place where weights may be used sparsely; with the editions of its
// weights. The kernel knows shapes and bytes, but not the operators.
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

// All neurons of a site in one form. Neurons are stored, fetched, kept and computed by edition; residency,
// arena slots and cache decisions belong to an edition. Sites that share their weights (a tied embedding and
// its head) share the edition.
//
// An edition may be made of another one, neuron by neuron, while it is fetched: the dense form of bitmaps,
// which replaces them, or one of fewer bits, which its sites have in addition. It is not in the store; some
// memories hold it where others hold its source (Memory::held).
struct Edition {
  SiteId owner = kNoSiteId;        // of the sites that share it, the one that every step uses whole
  uint16_t label = 0;              // encoding number for plugins; the kernel does not interpret it
  uint32_t n = 0;                  // neurons
  uint32_t slot_bytes = 0;         // of an arena slot; a multiple of 4096, where results are added of 64
  EditionId made_of = kNoEdition;  // the stored edition whose extents it uses; kNoEdition: it is stored
  uint32_t first_extent = 0;       // neuron i is extent first_extent + stride * i
  uint32_t stride = 1;             // more than 1: the extents between belong to other editions
  std::vector<uint32_t> bytes;     // [n] of weights in neuron i, without padding

  uint32_t extent_of(uint32_t neuron) const { return first_extent + stride * neuron; }
  uint32_t neuron_of(uint32_t extent) const { return (extent - first_extent) / stride; }
};

// A matrix of floats with one row per row of the batch, in the activations of each computing unit.
struct ActivationPlace {
  static constexpr uint32_t kNowhere = UINT32_MAX;
  uint32_t offset = kNowhere;  // in 64 B
  uint32_t stride = 0;         // floats from one row to the next

  bool there() const { return offset != kNowhere; }
};

// The rows of a batch that pass a site: those in which an earlier segment wrote a value other than 0 to this
// column of a buffer.
struct RowChoice {
  ActivationPlace place;
  uint32_t column = 0;
};

struct Site {
  std::string name;
  uint16_t layer = UINT16_MAX;
  uint16_t op_group = 0;
  uint16_t layer_group = 0;  // layers whose neurons of one number are contiguous; else its own
  uint8_t label = 0;         // axis number for plugins; the kernel does not interpret it
  // Results of neurons are added, in the order of their numbers; else each has a place of its own.
  bool added = false;
  uint32_t stretch = 1;  // neurons, by number, that are summed separately before their sum is added
  // The expert that the operator belongs to, if experts are cut into neurons: a step passes only the experts
  // that some row uses, with those rows.
  uint32_t expert = kNoExpertNumber;
  RowChoice rows = {};  // where there is an expert
  // The source of the active set: a predictor; the caller, with the pass (token ids); or the segment before
  // (a router, see `choice`).
  enum class Set : uint8_t { predicted, given, chosen } set = Set::predicted;
  bool never_silent = false;  // each neuron contributes to every row; false: some may not, or unknown
  uint32_t n = 0;             // neurons
  uint32_t n_in = 0;
  uint32_t n_out = 0;
  // The editions that a pass may use, at least one; the best first.
  std::vector<EditionId> editions = {};
  Flow flow = {};  // which units have, and take, the activations below
  // The input, [rows x n_in], once the segment before has run.
  ActivationPlace input = {};
  // The results of its neurons, [rows x n_out], before the segment after has run.
  ActivationPlace output = {};
  // The router's weights, [rows x n], written by the segment before; 0: the row does not use the neuron. Only
  // if the set is chosen.
  ActivationPlace choice = {};
  // The contribution of each neuron, [rows x n], written by messages with kMeasure; 0: it is not active. Only
  // sites whose kernels can write it have it.
  ActivationPlace contribution = {};

  bool given() const { return set == Set::given; }
  bool chosen() const { return set == Set::chosen; }
  bool of_expert() const { return expert != kNoExpertNumber; }
};

// The sites of a model in the order of one step, and their editions: the stored ones in the order of their
// owners, then those made of them. Immutable once a run has begun.
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
  // Returns the edition that is used if the quantizer does not choose.
  EditionId best(SiteId site) const { return all[site].editions.front(); }
  const Edition& best_of(SiteId site) const { return editions[best(site)]; }
  // Returns the edition that a pass of the site uses where a memory holds `edition`; kNoEdition: it does not
  // belong to the site.
  EditionId wanted(SiteId site, EditionId edition) const {
    const auto has = [&](EditionId of) { return std::ranges::count(all[site].editions, of) != 0; };
    if (has(edition)) return edition;
    if (edition >= editions.size() || !has(editions[edition].made_of)) return kNoEdition;
    return editions[edition].made_of;
  }
};

}  // namespace tierd
