// A pass of a recorded run, with what only weights could tell of it. The passes of a whole trace are kept as
// few bytes as the file has of them, and unpacked one at a time.
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
  std::vector<std::byte> events_;  // as the trace's codec writes them
};

}  // namespace tierd
