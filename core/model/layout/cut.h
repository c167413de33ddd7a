// The cuts of a site into neurons, the smallest parts that are moved and computed alone. The set is closed,
// and is visited once for a message or a table, never for each neuron.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

#include "core/model/layout/bundle.h"
#include "core/model/layout/column.h"
#include "core/model/layout/encodings.h"
#include "core/model/layout/expert.h"
#include "core/model/layout/rows.h"

namespace tierd {

using Cut = std::variant<Rows, Bundles, Columns, Experts>;

// The number of a cut in the variant, equal to the plugin interface's (TIERD_AXIS_…).
template <class C>
inline constexpr uint8_t kCutNumber = []<class... Cuts>(std::variant<Cuts...>*) {
  uint8_t number = 0;
  (void)((std::is_same_v<C, Cuts> || (++number, false)) || ...);
  return number;
}(static_cast<Cut*>(nullptr));

template <class C>
bool is_cut_into(const Cut& cut) {
  return std::holds_alternative<C>(cut);
}

inline uint32_t neurons(const Cut& cut) {
  return std::visit([](const auto& c) { return c.neurons(); }, cut);
}
// The values of a row's input, and of its result.
inline uint32_t inputs(const Cut& cut) {
  return std::visit([](const auto& c) { return c.inputs(); }, cut);
}
inline uint32_t outputs(const Cut& cut) {
  return std::visit([](const auto& c) { return c.outputs(); }, cut);
}
// Whether results of neurons are added, by their numbers; otherwise each has its own place in the output.
inline bool is_added(const Cut& cut) {
  return std::visit([](const auto& c) { return c.kAdded; }, cut);
}
// The number of neurons, by number, that are summed by themselves before their sum is added.
inline uint32_t run_of(const Cut& cut) {
  return std::visit([](const auto& c) { return c.kRun; }, cut);
}

// The bytes of a neuron: row groups, a bundle, a column or an expert; an extent may add padding.
inline uint64_t neuron_bytes(const Cut& cut, const Encodings& encodings, uint32_t neuron) {
  return std::visit([&](const auto& c) { return c.bytes(encodings, neuron); }, cut);
}
// The bytes of the weights of all neurons, without padding.
inline uint64_t tensor_bytes(const Cut& cut, const Encodings& encodings) {
  return std::visit([&](const auto& c) { return c.tensor_bytes(encodings); }, cut);
}

}  // namespace tierd
