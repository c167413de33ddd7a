#include "core/kernel/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace tierd {

Reads::Reads(Dispatcher& dispatcher, const std::vector<Site>& sites, const Residency& residency,
             Options options, CompletionSink& sink)
    : dispatcher_(dispatcher),
      sites_(sites),
      residency_(residency),
      options_(std::move(options)),
      sink_(sink),
      staging_(options_.memory.staging_blocks, options_.memory.block_bytes) {
  for (SiteId site = 0; site < sites.size(); ++site)
    arena_.push_back(places(options_.memory.arena_offset[site], sites[site].slot_bytes));
}

Fetch& Reads::open(SiteId site, uint32_t step, Priority priority) {
  if (unused_.empty()) unused_.push_back(&all_.emplace_back());
  Fetch& fetch = *fetches_.emplace_back(unused_.back());
  unused_.pop_back();
  std::vector<uint32_t> neurons = std::move(fetch.neurons);  // for their memory
  neurons.clear();
  fetch = {};
  fetch.site = site;
  fetch.step = step;
  fetch.priority = priority;
  fetch.neurons = std::move(neurons);
  return fetch;
}

void Reads::close(Fetch& fetch) {
  if (!fetch.into_arena()) staging_.give_back(fetch.block);
  fetch.awaited = false;
  fetches_.erase(std::ranges::find(fetches_, &fetch));
  unused_.push_back(&fetch);
}

// Appends what the agent is to read.
void Reads::list(const Fetch& fetch) {
  const Site& site = sites_[fetch.site];
  each_place(fetch, [&](uint32_t neuron, uint32_t place) {
    units_.push_back({site.extent_of(neuron), place});
  });
}

void Reads::post(std::span<Fetch* const> fetches, uint32_t present_step) {
  units_.clear();
  for (Fetch* fetch : fetches) {
    list(*fetch);
    ++fetch->attempts;
    fetch->state = Fetch::State::reading;
  }
  const Fetch& first = *fetches.front();
  Message message;
  message.op = Op::read;
  message.engine = EngineKind::read;
  message.priority = first.priority;
  message.agent = options_.flash_agent;
  message.step = present_step;
  message.site = first.site;
  if (first.priority == Priority::prefetch) message.expires_step = first.step;
  const MessageId id = dispatcher_.post(message, units_, options_.memory.agent, options_.memory.pool, sink_);
  for (Fetch* fetch : fetches) fetch->message = id;
  of_message_.resize(std::max<size_t>(of_message_.size(), id.slot + 1u));
  of_message_[id.slot].assign(fetches.begin(), fetches.end());
}

void Reads::ended(MessageId message, std::vector<Fetch*>& fetches) {
  fetches.clear();
  fetches.swap(of_message_[message.slot]);
  for (const Fetch* fetch : fetches) TIERD_CHECK(fetch->message == message);
}

void Reads::abandon(Fetch& fetch) {
  if (std::exchange(fetch.unwanted, true)) return;
  const std::vector<Fetch*>& together = of_message_[fetch.message.slot];
  if (std::ranges::all_of(together, &Fetch::unwanted)) dispatcher_.cancel(fetch.message);
}

Error Reads::error(const Fetch& fetch, const Done& done) const {
  const std::string origin = options_.describe_extent ? options_.describe_extent(done.bad_extent)
                                                      : fmt::format("extent {}", done.bad_extent);
  switch (done.status) {
    case DoneStatus::corrupt:
      return {Code::corrupt, origin,
              "the checksum does not match; the store is damaged: remove it and convert again"};
    case DoneStatus::cancelled:
      return {Code::cancelled, origin, "the read was cancelled"};
    default:
      // The agent's word for a file that ends inside the extent.
      if (done.aux == ENODATA) {
        return {Code::io_error, origin, "the file ends here; the store was cut short while it was in use"};
      }
      return {Code::io_error, origin,
              fmt::format("read failed after {} attempts: {}", fetch.attempts,
                          done.aux != 0 ? std::string(std::strerror(done.aux))
                                        : fmt::format("status {}", static_cast<int>(done.status)))};
  }
}

}  // namespace tierd
