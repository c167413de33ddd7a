#include "core/model/text/unicode_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/utf8.h"

namespace tierd {
namespace {

// utf8proc orders marks by exchanging neighbours. A run of marks as long as this is ordered here first.
constexpr size_t kLongRun = 32;

struct Character {
  utf8proc_int32_t code = 0;
  std::string_view bytes;
};

Character character_at(std::string_view text, size_t at) {
  const size_t bytes = utf8_character_bytes(text, at);
  TIERD_CHECK(bytes > 0);
  Character found{0, text.substr(at, bytes)};
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(found.bytes.data()),
                   static_cast<utf8proc_ssize_t>(bytes), &found.code);
  return found;
}

int class_of(const Character& character) {
  return utf8proc_get_property(character.code)->combining_class;
}

// Returns the text with the marks of long runs in canonical order, which no normalization form changes.
std::string with_ordered_runs(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<Character> run;
  const auto close = [&] {
    if (run.size() >= kLongRun) {
      std::ranges::stable_sort(run, {}, class_of);
    }
    for (const Character& mark : run) out += mark.bytes;
    run.clear();
  };
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    at += character.bytes.size();
    if (class_of(character) == 0) {
      close();
      out += character.bytes;
    } else {
      run.push_back(character);
    }
  }
  close();
  return out;
}

int options_of(UnicodeForm form) {
  switch (form) {
    case UnicodeForm::nfc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    case UnicodeForm::nfd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    case UnicodeForm::nfkc:
      return UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
    case UnicodeForm::nfkd:
      return UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
  }
  return 0;
}

void append_mapped(std::string_view text, UnicodeForm form, std::string& out) {
  const std::string ordered = with_ordered_runs(text);
  utf8proc_uint8_t* mapped = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(ordered.data()),
                                              static_cast<utf8proc_ssize_t>(ordered.size()), &mapped,
                                              static_cast<utf8proc_option_t>(options_of(form)));
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(mapped, std::free);
  TIERD_CHECK_MSG(bytes >= 0, utf8proc_errmsg(bytes));
  out.append(reinterpret_cast<const char*>(mapped), static_cast<size_t>(bytes));
}

}  // namespace

std::string to_form(std::string_view text, UnicodeForm form) {
  // Characters below U+0300 (in NFC; below U+0080 in the other forms) do not change, and what is before them
  // does not depend on them. Only a mark that follows one changes it.
  const unsigned char first = form == UnicodeForm::nfc ? 0xcc : 0x80;
  const auto changes = [&](size_t at) { return static_cast<unsigned char>(text[at]) >= first; };
  std::string out;
  out.reserve(text.size());
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    if (!changes(at)) {
      ++at;
      continue;
    }
    size_t begin = at;
    if (begin > done) --begin;
    while (begin > done && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
    while (at < text.size() && changes(at)) at += utf8_character_bytes(text, at);
    out += text.substr(done, begin - done);
    append_mapped(text.substr(begin, at - begin), form, out);
    done = at;
  }
  out += text.substr(done);
  return out;
}

std::string to_lower(std::string_view text) {
  constexpr utf8proc_int32_t kDottedI = 0x130;  // the only one whose lower case has two characters
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    at += character.bytes.size();
    append_utf8(out,
                static_cast<char32_t>(character.code == kDottedI ? 'i' : utf8proc_tolower(character.code)));
    if (character.code == kDottedI) append_utf8(out, 0x307);
  }
  return out;
}

std::string without_marks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    at += character.bytes.size();
    const utf8proc_category_t category = utf8proc_category(character.code);
    const bool mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                      category == UTF8PROC_CATEGORY_ME;
    if (!mark) out += character.bytes;
  }
  return out;
}

}  // namespace tierd
