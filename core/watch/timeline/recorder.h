// Fills a timeline during a run.
#pragma once

#include <cstdint>

#include "core/kernel/observer.h"
#include "core/kernel/post/clocks.h"
#include "core/watch/timeline/timeline.h"

namespace tierd {

class TimelineRecorder final : public SilentObserver {
 public:
  // Both outlive the recorder.
  TimelineRecorder(Timeline& timeline, const Clock& clock) : timeline_(timeline), clock_(clock) {}

  void pass_begins(SiteId site, const Pass& pass) override;
  void step_ends(uint32_t step) override;
  void settled(const std::function<uint64_t()>& residency) override;
  void posted(const Message& message, const Payload& payload) override;
  void raised(const Message& message) override;
  void delivered(const Message& message, const Done& done, bool withdrawn) override;
  void predictor_asked(SiteId site, const char* what, uint64_t begin_ns, uint64_t end_ns) override;
  void waited(uint64_t begin_ns, uint64_t end_ns) override;

 private:
  Timeline& timeline_;
  const Clock& clock_;
  // Posted and not yet delivered.
  uint32_t demands_ = 0;
  uint32_t computing_ = 0;
};

}  // namespace tierd
