// "Did you mean": finds the known word nearest to a misspelt one.
#pragma once

#include <span>
#include <string_view>

namespace tierd {

// Returns the number of letters to insert, delete or replace to turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

// Returns the nearest of `known`, or "" if none is near enough.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace tierd
