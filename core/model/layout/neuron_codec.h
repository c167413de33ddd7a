// A codec compresses the bytes of a neuron in any encoding and expands them again. It is a plugin
// (core/strategy/codec.h); code that stores or reads neurons sees only this interface.
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

  // Stores record this name, which consists of letters, digits, '-' and '_'.
  virtual std::string_view name() const = 0;
  // Stores record the settings, such as "level=3". Expansion does not depend on them.
  virtual std::string_view settings() const = 0;

  // Any thread may call the functions below, several at once. Errors name the codec.

  // Compresses `dense` to `kept`, at least one byte, always to the same. Errors: plugin_fault, no_space.
  virtual Status compress(std::span<const std::byte> dense, std::vector<std::byte>& kept) const = 0;
  // Fills `dense` from the compressed bytes at the beginning of `kept`; bytes behind them, such as an
  // extent's padding, are ignored. Errors: corrupt if `kept` is no output of compress() for dense.size()
  // bytes; plugin_fault, no_space. After an error the content of `dense` is undefined.
  virtual Status expand(std::span<const std::byte> kept, std::span<std::byte> dense) const = 0;
};

}  // namespace tierd
