// Turns tokens, one at a time, into text that can be shown: whole characters only, and nothing of a stop
// string. The text of a control token is hidden: it is not shown, but a stop string may contain it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tierd {

class TextStream {
 public:
  // The text ends before the first of `stops` that occurs in it, with or without the texts of hidden tokens.
  // Empty stop strings are ignored.
  explicit TextStream(std::vector<std::string> stops = {});

  // Adds bytes and returns the text that can be shown now. Bytes that are no character become U+FFFD; bytes
  // that may become a character or a stop string are held back. Returns nothing after a stop.
  std::string add(std::string_view bytes);
  // The same for the text of a hidden token; the returned text is that of earlier tokens.
  std::string add_hidden(std::string_view bytes);
  // Ends the text and returns the bytes held back.
  std::string finish();

  // Returns the stop string that ended the text; empty if none has.
  const std::string& stop() const { return stop_; }

 private:
  // The end of the text, hidden tokens included, in which a stop string may begin.
  struct Whole {
    std::string bytes;
    std::string shown;  // for each byte: '\1' if it is also in `kept_`, whose last bytes these are
    void add(std::string_view more, bool hidden);
    size_t shown_from(size_t at) const;
  };
  struct Match {
    size_t at = std::string::npos;  // in `kept_`
    const std::string* stop = nullptr;
  };
  Match first_stop() const;
  size_t shown_of_begun();
  std::string show();

  std::vector<std::string> stops_;
  std::string kept_;  // not yet shown
  Whole whole_;
  std::string stop_;
};

// Returns the text with U+FFFD for each byte that is not part of a well-formed character.
std::string well_formed(std::string_view text);

}  // namespace tierd
