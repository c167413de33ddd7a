#include "core/watch/trace/packed_pass.h"

#include <utility>

#include "core/base/check.h"
#include "core/watch/trace/codec.h"

namespace tierd {

PackedPass::PackedPass(AskedPass pass) : site_(pass.begins.site) {
  EventEncoder encoder;
  encoder.add({0, std::move(pass.begins)});
  if (pass.activated) encoder.add({0, std::move(*pass.activated)});
  if (pass.looked_ahead) encoder.add({0, std::move(*pass.looked_ahead)});
  if (pass.measured) encoder.add({0, std::move(*pass.measured)});
  if (pass.fired) encoder.add({0, std::move(*pass.fired)});
  events_.assign(encoder.bytes().begin(), encoder.bytes().end());
}

AskedPass PackedPass::unpack() const {
  auto events = decode_events(events_, "a packed pass", UINT64_MAX);
  TIERD_CHECK(events.ok());
  AskedPass pass;
  for (Event& event : *events) {
    if (auto* begins = std::get_if<PassBegins>(&event.what)) pass.begins = std::move(*begins);
    if (auto* activated = std::get_if<Activated>(&event.what)) pass.activated = std::move(*activated);
    if (auto* ahead = std::get_if<LookedAhead>(&event.what)) pass.looked_ahead = std::move(*ahead);
    if (auto* measured = std::get_if<Measured>(&event.what)) pass.measured = std::move(*measured);
    if (auto* fired = std::get_if<HasFired>(&event.what)) pass.fired = std::move(*fired);
  }
  return pass;
}

}  // namespace tierd
