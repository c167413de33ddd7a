#include "core/model/text/utf8_segments.h"

#include "core/base/utf8.h"

namespace tierd {

std::vector<Utf8Segment> utf8_segments(std::string_view text) {
  std::vector<Utf8Segment> segments;
  size_t begin = 0;
  bool well_formed = true;
  const auto close = [&](size_t end) {
    if (end > begin) segments.push_back({text.substr(begin, end - begin), well_formed});
    begin = end;
  };
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = utf8_character_bytes(text, at);
    if ((bytes > 0) != well_formed) {
      close(at);
      well_formed = !well_formed;
    }
    at += bytes > 0 ? bytes : 1;
  }
  close(text.size());
  return segments;
}

}  // namespace tierd
