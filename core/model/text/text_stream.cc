#include "core/model/text/text_stream.h"

#include <algorithm>

#include "core/base/utf8.h"

namespace tierd {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Returns the bytes of the character that begins with this byte; 1 if none does.
size_t bytes_begun_by(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 1;
}

// Returns the number of bytes at the end of `text` that later bytes could complete to a character.
size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const std::string_view tail = text.substr(text.size() - back);
    const auto first = static_cast<unsigned char>(tail.front());
    if ((first & 0xC0) == 0x80) continue;  // a continuation byte
    if (bytes_begun_by(first) <= back) return 0;
    if (back == 1) return back;
    // Not every second byte is valid: no overlong forms, no surrogates, nothing beyond U+10FFFF.
    const auto second = static_cast<unsigned char>(tail[1]);
    const bool possible = (first != 0xE0 || second >= 0xA0) && (first != 0xED || second < 0xA0) &&
                          (first != 0xF0 || second >= 0x90) && (first != 0xF4 || second < 0x90);
    return possible ? back : 0;
  }
  return 0;
}

// Returns the length of the longest end of `text` that is a beginning of `stop`.
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
  whole_.add(bytes, false);
  return show();
}

std::string TextStream::add_hidden(std::string_view bytes) {
  if (!stop_.empty()) return {};
  whole_.add(bytes, true);
  return show();
}

void TextStream::Whole::add(std::string_view more, bool hidden) {
  bytes += more;
  shown.append(more.size(), hidden ? '\0' : '\1');
}

// Returns the number of shown bytes from `at` on.
size_t TextStream::Whole::shown_from(size_t at) const {
  return static_cast<size_t>(std::count(shown.begin() + static_cast<ptrdiff_t>(at), shown.end(), '\1'));
}

TextStream::Match TextStream::first_stop() const {
  Match first;
  for (const std::string& stop : stops_) {
    size_t at = kept_.find(stop);
    if (const size_t in_whole = whole_.bytes.find(stop); in_whole != std::string::npos)
      at = std::min(at, kept_.size() - whole_.shown_from(in_whole));
    if (at < first.at) first = {at, &stop};
  }
  return first;
}

// Drops the part of the whole text in which no stop string begins. Returns the number of shown bytes in the
// rest.
size_t TextStream::shown_of_begun() {
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, begun(whole_.bytes, stop));
  whole_.bytes.erase(0, whole_.bytes.size() - keep);
  whole_.shown.erase(0, whole_.shown.size() - keep);
  return whole_.shown_from(0);
}

std::string TextStream::show() {
  if (const Match match = first_stop(); match.stop != nullptr) {
    stop_ = *match.stop;
    std::string out = well_formed(std::string_view(kept_).substr(0, match.at));
    kept_.clear();
    return out;
  }
  size_t keep = std::max(unfinished(kept_), shown_of_begun());
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
