// A text that comes token by token, as a reader can be shown it: whole characters only, and nothing of a stop
// string. A control token is hidden: it is not shown, but a stop string may name it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tierd {

class TextStream {
 public:
  // The text ends before the first of `stops` that occurs in it, be it with the texts of hidden tokens or
  // without them; empty ones are passed over.
  explicit TextStream(std::vector<std::string> stops = {});

  // The next bytes: what can be shown now. Bytes that are no character become U+FFFD; those that may become
  // one, or a stop string, are kept back. Nothing after a stop.
  std::string add(std::string_view bytes);
  // The same for the text of a hidden token: what can be shown now is of earlier tokens.
  std::string add_hidden(std::string_view bytes);
  // The text is over: what was kept back.
  std::string finish();

  // The stop string that ended it; empty: none has.
  const std::string& stop() const { return stop_; }

 private:
  // The end of the text with its hidden tokens, as far as a stop string may begin in it.
  struct Whole {
    std::string bytes;
    std::string shown;  // for each byte: whether it is in `kept_`, too, which ends with these
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

// What is no well-formed character replaced by U+FFFD.
std::string well_formed(std::string_view text);

}  // namespace tierd
