#include "core/text/text_stream.h"

#include <algorithm>

#include "core/text/utf8.h"

namespace tierd {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes that the character has that this byte begins; 1 where it begins none.
size_t bytes_begun_by(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 1;
}

// Whether bytes that are to come could make the last ones a character: so many they are.
size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    const auto first = static_cast<unsigned char>(tail.front());
    if ((first & 0xC0) == 0x80) continue;  // goes on with one
    if (bytes_begun_by(first) <= back) return 0;
    if (back == 1) return back;
    // Not every second byte can follow: no overlong forms, no surrogates, nothing beyond U+10FFFF.
    const auto second = static_cast<unsigned char>(tail[1]);
    const bool possible = (first != 0xE0 || second >= 0xA0) && (first != 0xED || second < 0xA0) &&
                          (first != 0xF0 || second >= 0x90) && (first != 0xF4 || second < 0x90);
    return possible ? back : 0;
  }
  return 0;
}

// The longest end of `text` that `stop` begins with.
size_t begun(std::string_view text, std::string_view stop) {
  for (size_t n = std::min(text.size(), stop.size() - 1); n > 0; --n) {
    if (text.ends_with(stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

std::string well_formed(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = utf8_character_bytes(text, at);
    out += bytes == 0 ? kReplacement : text.substr(at, bytes);
    at += std::max<size_t>(bytes, 1);
  }
  return out;
}

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, std::string());
}

std::string TextStream::add(std::string_view bytes) {
  if (!stop_.empty()) return {};
  kept_ += bytes;
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = kept_.find(stop);
    if (at >= end) continue;
    end = at;
    stop_ = stop;
  }
  if (!stop_.empty()) {
    std::string out = well_formed(std::string_view(kept_).substr(0, end));
    kept_.clear();
    return out;
  }
  size_t keep = unfinished(kept_);
  for (const std::string& stop : stops_) keep = std::max(keep, begun(kept_, stop));
  std::string out = well_formed(std::string_view(kept_).substr(0, kept_.size() - keep));
  kept_.erase(0, kept_.size() - keep);
  return out;
}

std::string TextStream::finish() {
  std::string out = well_formed(kept_);
  kept_.clear();
  return out;
}

}  // namespace tierd
