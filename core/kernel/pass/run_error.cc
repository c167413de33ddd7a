#include "core/kernel/pass/run_error.h"

namespace tierd {

Error run_error(const Dispatcher& dispatcher, const Message& message, const Done& done,
                const std::string& site) {
  if (done.status == DoneStatus::lost) return dispatcher.lost(message.agent);
  if (done.status == DoneStatus::corrupt)
    return {Code::corrupt, site, "its weights are malformed; find them with tier convert --verify STORE"};
  return {Code::internal, site, "compute failed: " + std::string(status_name(done.status))};
}

}  // namespace tierd
