// Divides text into runs that are UTF-8 and runs of bytes that are not.
#pragma once

#include <string_view>
#include <vector>

namespace tierd {

struct Utf8Segment {
  std::string_view text;  // not empty
  bool well_formed = false;
};

// Returns the segments of `text` in order; neighbours differ in well_formed.
std::vector<Utf8Segment> utf8_segments(std::string_view text);

}  // namespace tierd
