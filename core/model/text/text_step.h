// The steps of a tokenizer.json as data: those applied to text before its words are tokenized, and those
// applied to the pieces of tokens to obtain text again.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tierd {

enum class TextStepKind : uint8_t {
  // Normalizers.
  nfc,
  nfd,
  nfkc,
  nfkd,
  lowercase,
  strip_accents,
  prepend,  // `content` before text that is not empty
  // Pre-tokenizers.
  split,             // at `pattern`
  digits,            // at runs of numbers, or at each number
  punctuation,       // at punctuation characters
  whitespace,        // runs of word characters and runs of others; white space is dropped
  whitespace_split,  // at white space, which is dropped
  // Decoders.
  byte_fallback,  // <0xNN> is a byte
  fuse,           // joins all pieces
  // Steps that occur among several of these groups.
  replace,     // `pattern` by `content`
  strip,       // removes white space, or up to `begin` and `end` times the character `content`
  byte_level,  // GPT-2's byte alphabet, after GPT-2's expression if `cuts`
  metaspace,   // `content` for spaces; begins words if `cuts`
};

// The treatment of the matches of a pattern that cuts text.
enum class CutBehavior : uint8_t { isolated, removed, merged_with_previous, merged_with_next, contiguous };

// The texts that get a space before them unless they begin with one.
enum class SpacePrefix : uint8_t { never, first, always };

struct TextStep {
  TextStepKind kind = TextStepKind::fuse;
  std::string pattern = {};
  bool regex = false;  // `pattern` is an expression in Oniguruma's syntax, else a text
  std::string content = {};
  CutBehavior behavior = CutBehavior::isolated;
  bool invert = false;  // the text between matches is what matches
  bool cuts = false;
  SpacePrefix prefix = SpacePrefix::never;
  uint32_t begin = 0;
  uint32_t end = 0;
  bool operator==(const TextStep&) const = default;
};

constexpr std::array<std::string_view, 18> names_of(TextStepKind) {
  return {"nfc",           "nfd",   "nfkc",    "nfkd",        "lowercase",  "strip_accents",
          "prepend",       "split", "digits",  "punctuation", "whitespace", "whitespace_split",
          "byte_fallback", "fuse",  "replace", "strip",       "byte_level", "metaspace"};
}
constexpr std::array<std::string_view, 5> names_of(CutBehavior) {
  return {"isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"};
}
constexpr std::array<std::string_view, 3> names_of(SpacePrefix) {
  return {"never", "first", "always"};
}

}  // namespace tierd
