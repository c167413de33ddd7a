#include "tiers/flash/read_join.h"

#include <algorithm>

#include "core/agent/message.h"
#include "core/base/align.h"
#include "core/base/check.h"

namespace tierd {
namespace {

// The largest extent that is copied although it could land at its destination: from some ten microseconds on,
// the copy costs more than the request that it saves.
constexpr uint64_t kMostCopied = uint64_t{64} << 10;

// The begin and the end of the file's blocks that hold an extent.
uint64_t cover_begin(const Landing& unit) {
  return align_down(unit.begin(), kDirectIoAlignment);
}
uint64_t cover_end(const Landing& unit) {
  return align_up(unit.end(), kDirectIoAlignment);
}

bool lands_directly(const Landing& unit, const JoinRules& rules) {
  if (unit.expanded != 0) return false;
  if (rules.directly != LandsDirectly::blocks) return rules.directly == LandsDirectly::anything;
  const uint64_t bits = unit.extent->offset | unit.extent->bytes | reinterpret_cast<uintptr_t>(unit.into);
  return bits % kDirectIoAlignment == 0;
}

bool may_bounce(const Landing& unit, const JoinRules& rules) {
  if (cover_end(unit) - cover_begin(unit) > rules.bounce_bytes) return false;
  return !lands_directly(unit, rules) || unit.extent->bytes <= kMostCopied;
}

// Adds units while the gaps between them cost less than a request.
Join bounced_join(std::span<const Landing> units, const JoinRules& rules) {
  Join join = {.offset = cover_begin(units.front()), .bounced = true};
  const uint64_t most = std::min({rules.max_read_bytes, rules.bounce_bytes, rules.max_bounced_bytes});
  uint64_t wanted_end = units.front().begin();  // bytes before it belong to units, or were counted as wasted
  uint64_t wanted = 0;
  for (const Landing& unit : units) {
    if (!may_bounce(unit, rules)) break;
    const uint64_t end = std::max(join.offset + join.bytes, cover_end(unit));
    if (join.count != 0) {
      const uint64_t so_far = join.offset + join.bytes;
      if (cover_begin(unit) > so_far && cover_begin(unit) - so_far > rules.gap_bytes) break;
      if (end > so_far && end - join.offset > most) break;
    }
    join.bytes = end - join.offset;
    ++join.count;
    if (unit.end() > wanted_end) {
      wanted += unit.end() - std::max(unit.begin(), wanted_end);
      wanted_end = unit.end();
    }
  }
  join.wasted_bytes = join.bytes - wanted;
  return join;
}

}  // namespace

bool readable(const Landing& unit, const JoinRules& rules) {
  const uint64_t bits = unit.extent->offset | unit.extent->bytes;
  if (unit.extent->bytes == 0 || bits % kPlaceUnit != 0) return false;
  return lands_directly(unit, rules) || may_bounce(unit, rules);
}

Join next_join(std::span<const Landing> units, const JoinRules& rules) {
  const Join direct = next_direct_join(units, rules);
  const Join bounced = bounced_join(units, rules);
  TIERD_CHECK(direct.count + bounced.count != 0);
  if (bounced.count == 0) return direct;
  return bounced.count > direct.count || rules.prefer_bounce ? bounced : direct;
}

// Adds units while they are contiguous both in the file and in memory.
Join next_direct_join(std::span<const Landing> units, const JoinRules& rules) {
  const Landing& first = units.front();
  Join join = {.offset = first.begin()};
  for (const Landing& unit : units) {
    if (!lands_directly(unit, rules)) break;
    if (unit.begin() != join.offset + join.bytes || unit.into != first.into + join.bytes) break;
    if (join.count != 0 && join.bytes + unit.extent->bytes > rules.max_read_bytes) break;
    join.bytes += unit.extent->bytes;
    ++join.count;
  }
  return join;
}

}  // namespace tierd
