// Hands over the first elements of a queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace tierd {

// Moves as many elements as `into` has room for out of `queue`, oldest first, and returns their number.
template <class Queue, class T>
size_t take_first(Queue& queue, std::span<T> into) {
  const size_t n = std::min(into.size(), queue.size());
  const auto end = queue.begin() + static_cast<std::ptrdiff_t>(n);
  std::copy(queue.begin(), end, into.begin());
  queue.erase(queue.begin(), end);
  return n;
}

}  // namespace tierd
