// A codec writes the bytes of a neuron as fewer bytes and gives them back, whatever encoding they are in. It
// is a plugin (core/strategy/codec.h), which whoever stores neurons or reads them need not know.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace tierd {

class NeuronCodec {
 public:
  virtual ~NeuronCodec() = default;

  // A store keeps this name, which has letters, digits, '-' and '_'.
  virtual std::string_view name() const = 0;
  // A store keeps what it was told, such as "level=3". Expanding does not depend on it.
  virtual std::string_view settings() const = 0;

  // The functions below may be called from any thread, by several at once. Errors name the codec.

  // `kept` becomes what `dense` is compressed to, at least one byte; the same for the same bytes. Errors:
  // plugin_fault, no_space.
  virtual Status compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) const = 0;
  // Fills `dense` with what was compressed, which begins at `kept`; what lies behind it, such as an extent's
  // padding, is passed over. Errors: corrupt, where it is not what was compressed or was made from more or
  // fewer bytes; plugin_fault, no_space. After an error `dense` may hold anything.
  virtual Status expand(std::span<const std::byte> kept, std::span<std::byte> dense) const = 0;
};

}  // namespace tierd
