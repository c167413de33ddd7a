// "did you mean": the known word that is nearest to a misspelt one.
#pragma once

#include <span>
#include <string_view>

namespace tierd {

// Letters to insert, delete or replace to make `b` of `a`.
size_t edit_distance(std::string_view a, std::string_view b);

// The nearest of `known`, or "" when none is near enough to have been meant.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace tierd
