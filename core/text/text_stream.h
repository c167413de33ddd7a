// A text that comes token by token, as a reader can be shown it: whole characters only, and nothing of a stop
// string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tierd {

class TextStream {
 public:
  // The text ends before the first of `stops` that occurs in it; empty ones are passed over.
  explicit TextStream(std::vector<std::string> stops = {});

  // The next bytes: what can be shown now. Bytes that are no character become U+FFFD; those that may become
  // one, or a stop string, are kept back. Nothing after a stop.
  std::string add(std::string_view bytes);
  // The text is over: what was kept back.
  std::string finish();

  // The stop string that ended it; empty: none has.
  const std::string& stop() const { return stop_; }

 private:
  std::vector<std::string> stops_;
  std::string kept_;
  std::string stop_;
};

// What is no well-formed character replaced by U+FFFD.
std::string well_formed(std::string_view text);

}  // namespace tierd
