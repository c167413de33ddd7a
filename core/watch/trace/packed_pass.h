// A pass of a recorded run, with the results that only weights can give. The passes of a whole trace are kept
// in the file's packed form, and unpacked one at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/kernel/site.h"
#include "core/watch/trace/event.h"

namespace tierd {

struct AskedPass {
  PassBegins begins;
  std::optional<Activated> activated = std::nullopt;
  std::optional<LookedAhead> looked_ahead = std::nullopt;
  std::optional<Measured> measured = std::nullopt;
  std::optional<HasFired> fired = std::nullopt;
};

class PackedPass {
 public:
  explicit PackedPass(AskedPass pass);

  SiteId site() const { return site_; }
  AskedPass unpack() const;

 private:
  SiteId site_;
  std::vector<std::byte> events_;  // in the form of the trace's codec
};

}  // namespace tierd
