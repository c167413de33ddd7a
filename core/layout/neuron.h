// What a neuron has of memory, whoever describes its site: the store or a computing agent.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/align.h"
#include "core/layout/bundle.h"
#include "core/layout/row_group.h"

namespace tierd {

// Bytes of the packed groups, the bundle, the column or the expert that a neuron is; its extent may add
// padding. Site has axis, n_in, n_out, rows_per_neuron, encoding_of, bundle, column and expert.
template <class Site>
uint64_t neuron_bytes(const Site& site, uint32_t neuron) {
  switch (site.axis) {
    case Axis::neuron:
      return site.bundle().bytes();
    case Axis::channel:
      return site.column().bytes();
    case Axis::expert:
      return site.expert().bytes();
    case Axis::row:
      break;
  }
  const uint32_t rows = std::min(site.rows_per_neuron, site.n_out - neuron * site.rows_per_neuron);
  return divide_up(rows, kGroupRows) * group_bytes(site.encoding_of(neuron), site.n_in);
}

}  // namespace tierd
