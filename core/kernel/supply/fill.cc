#include "core/kernel/supply/fill.h"

#include <utility>

namespace tierd {

Task<Status> Fill::run(std::vector<WantedNeurons> wanted, std::function<void(uint64_t)> progress,
                       std::function<bool()> stopping) {
  // g++ 12 with UBSan believes `this` to be null where a member that is a reference is awaited.
  Notice& changed = context_.changed;
  progress_ = std::move(progress);
  std::vector<FetchList> lists;
  status_ = admit(std::move(wanted), lists);
  for (FetchList& list : lists) {
    if (status_.ok()) status_ = sources_.find(list);
    while (!list.done() && status_.ok()) {
      sources_.fetch();
      if (!transfers_.start(list)) co_await changed;
      if (status_.ok()) status_ = Sources::status(list);
      if (status_.ok() && stopping()) status_ = Error{Code::cancelled, "load", "interrupted"};
    }
    admission_.drop(list);
    sources_.leave(list);
  }
  while (!transfers_.all().empty()) {
    co_await changed;
    transfers_.try_again();
  }
  progress_ = nullptr;
  if (!status_.ok()) co_return status_;
  co_return admission_.take_fault();
}

// Error: plugin_fault; the lists before it have leased slots.
Status Fill::admit(std::vector<WantedNeurons> wanted, std::vector<FetchList>& lists) {
  for (WantedNeurons& from : wanted) {
    FetchList& list = lists.emplace_back();
    list.purpose = {context_.sites.editions[from.edition].owner, 0, context_.id};
    list.edition = from.edition;
    list.priority = Priority::migration;
    list.any_order = true;
    list.waiter = this;
    TIERD_TRY(admission_.admit_wanted(std::move(from), list));
  }
  return {};
}

void Fill::message_ended(const Done& done) {
  if (done.status == DoneStatus::ok && progress_) progress_(done.bytes);
}

void Fill::failed(uint32_t /*number*/, const Error& error) {
  if (status_.ok()) status_ = error;
}

}  // namespace tierd
