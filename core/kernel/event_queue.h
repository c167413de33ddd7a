// The modelled clock: which request a lane serves next and when it is done, in virtual time.
//
// An agent's lanes work side by side; a lane serves one request at a time. It chooses
// only when it is free and all that ends at that moment has been told, among the requests that wait
// *then*: by priority, then by order of arrival. A demand therefore overtakes prefetches that wait, never one
// that has started. Completions come out ordered by (virtual time, priority, id).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "core/message/message.h"

namespace tierd {

class EventQueue {
 public:
  struct Completion {
    Message message;
    uint64_t start_ns = 0;
    uint64_t done_ns = 0;
    bool cancelled = false;
  };

  uint64_t now_ns() const { return now_ns_; }

  // Takes the request at the present virtual time; it occupies its lane for `service_ns`.
  void submit(const Message& message, uint64_t service_ns);
  // Takes a waiting request out; it completes as cancelled, now. A started one runs on (returns false).
  bool cancel(MessageId id);
  // A waiting request gets this priority. False if it has started or is not here.
  bool raise(MessageId id, Priority priority);

  // Advances virtual time to the next completion and hands it over; nothing when all is done.
  std::optional<Completion> next();
  bool empty() const { return waiting_.empty() && running_.empty() && cancelled_.empty(); }

 private:
  struct Waiting {
    Message message;
    uint64_t service_ns;
    uint64_t arrival;
  };
  using LaneKey = uint32_t;
  static LaneKey key(const Message& m) { return static_cast<uint32_t>(m.agent) << 8 | m.lane; }
  static std::tuple<uint64_t, Priority, uint32_t> rank(const Completion& c) {
    return {c.done_ns, c.message.priority, c.message.id.slot};
  }
  std::vector<Waiting>::iterator find(MessageId id);
  std::map<LaneKey, Completion>::iterator first_running();
  std::optional<Completion> take_present();
  void start_what_can();

  uint64_t now_ns_ = 0;
  uint64_t arrivals_ = 0;
  std::vector<Waiting> waiting_;
  std::map<LaneKey, Completion> running_;  // by lane
  std::vector<Completion> cancelled_;      // to be handed over at the present time
};

}  // namespace tierd
