// A stretch is the neurons of a site that are summed by themselves before they are added (Site::stretch, by
// their numbers). Where results are added, missing neurons are fetched in whole stretches: in which order,
// and which of them the next transfers take, of one site, or of several whose neurons of one number are
// contiguous in the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/kernel/supply/fetch_list.h"

namespace tierd {

// Sorts a list that no transfer has taken from by stretches of `in_stretch` numbers.
//
// Stretches are computed in their order, each when it is whole. The neurons of a stretch that pass through
// staging are one read into one block, including the kept ones between them (a read takes whole stretches),
// and reads start in this order, so that no pass waits for ever. Let s be the first stretch of which a neuron
// is missing. If all of it was asked for, it will land. If not, the list goes on with s, the reads of the
// list so far fetched earlier stretches alone, and those were handed out: their blocks are given back. Any
// other block was leased by a read ahead, for this site or a later one, which leaves a block to the demand at
// any time. A kept neuron needs no block.
//
// A pass of several editions fetches them one after the other, and computes them in that order: their lists
// follow each other like the stretches of one, and the argument is the same.
void sort_by_stretches(uint32_t in_stretch, FetchList& list);

// Whether nothing but room keeps transfers from taking the next stretch of a list that is not done.
bool next_is_ready(uint32_t in_stretch, const FetchList& list);

// A list that is not done, its neurons sorted by stretches.
struct NextStretches {
  FetchList* list = nullptr;
  size_t most = 0;  // neurons that may be taken
  size_t end = 0;   // in the list: behind the last that was taken, set by take_stretches

  std::span<const ToFetch> taken() const {
    return std::span(list->neurons).subspan(list->next, end - list->next);
  }
  bool takes_streams() const;  // whether some of the taken neurons pass through staging
};

// Takes whole stretches of `in_stretch` numbers, the lowest first and of all sites together, as many as
// `most` of each and `most_units` of all allow, up to a stretch of which a neuron is not ready. The first
// stretch must fit.
void take_stretches(std::span<NextStretches> asked, uint32_t in_stretch, size_t most_units);

}  // namespace tierd
