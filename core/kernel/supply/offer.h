// An offer is the face that a gathering shows to the memory over its own: the neurons that this other memory
// wants to fetch from here, each with the place that it keeps until it was fetched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/kernel/site.h"

namespace tierd {

class Offer {
 public:
  static constexpr uint32_t kNowhere = UINT32_MAX;
  virtual ~Offer() = default;

  virtual EditionId edition() const = 0;
  // The place of a wanted neuron, which it keeps until `took`; kNowhere until it can be fetched from here.
  virtual uint32_t place(uint32_t neuron) const = 0;
  bool here(uint32_t neuron) const { return place(neuron) != kNowhere; }
  // Neurons, ascending, that the cache refused to have fetched ahead: they will not be here.
  virtual const std::vector<uint32_t>& refused() const = 0;
  // Not ok once a wanted neuron cannot be fetched.
  virtual Status status() const = 0;

  // The other memory has these neurons, or does not want them any more: their blocks are given back.
  virtual void took(std::span<const uint32_t> neurons) = 0;
  // Fetches nothing more.
  virtual void stop() = 0;
  // Leaves the blocks that hold none of these neurons to the next gathering with the same purpose.
  virtual void release_all_but(std::span<const uint32_t> neurons) = 0;

  // Counts the lists and transfers of the other memory that refer to this. The last one that lets go closes
  // it.
  void hold() { ++holders_; }
  uint32_t let_go() { return --holders_; }

 private:
  uint32_t holders_ = 0;
};

}  // namespace tierd
