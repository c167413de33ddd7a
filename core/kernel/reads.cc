#include "core/kernel/reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"

namespace tierd {
namespace {

// Blocks that look-ahead leaves free: one, so that a demand never waits for the compute of a later site, nor
// of a later run (see RunOrder); where there are many, some more, so that it reads one while it computes
// another.
uint32_t left_to_demand(uint32_t blocks) {
  return std::clamp(blocks / 8, 1u, 4u);
}

// What one message of a pass that waits asks for, where it can begin with the first runs: what a disk reads
// in some tenths of a millisecond, a few hand-overs long.
constexpr uint32_t kDemandedBytes = 512u << 10;

// What a block and a message must have room for at once.
uint32_t together(const Site& site) {
  return std::min(site.n, site.run);
}

}  // namespace

Reads::Reads(Dispatcher& dispatcher, const SiteTable& sites, const Residency& residency, Options options,
             CompletionSink& sink)
    : dispatcher_(dispatcher),
      sites_(sites),
      residency_(residency),
      options_(std::move(options)),
      sink_(sink),
      staging_(options_.memory.staging_blocks, options_.memory.block_bytes),
      demand_blocks_(left_to_demand(staging_.blocks())) {
  for (EditionId e = 0; e < sites.editions.size(); ++e)
    arena_.push_back(places(options_.memory.arena_offset[e], sites.editions[e].slot_bytes));
  for (const Site& site : sites) {
    for (const EditionId edition : site.editions)
      TIERD_CHECK(together(site) <= std::min(most_in_block(edition), most_units()));
  }
}

Fetch& Reads::open(SiteId site, EditionId edition, uint32_t step, Priority priority) {
  if (unused_.empty()) unused_.push_back(&all_.emplace_back());
  Fetch& fetch = *fetches_.emplace_back(unused_.back());
  unused_.pop_back();
  std::vector<uint32_t> neurons = std::move(fetch.neurons);  // for their memory
  neurons.clear();
  fetch = {};
  fetch.site = site;
  fetch.edition = edition;
  fetch.step = step;
  fetch.priority = priority;
  fetch.neurons = std::move(neurons);
  return fetch;
}

void Reads::close(Fetch& fetch) {
  if (!fetch.into_arena()) staging_.give_back(fetch.block);
  fetch.gathering = nullptr;
  fetches_.erase(std::ranges::find(fetches_, &fetch));
  unused_.push_back(&fetch);
}

// Appends what the agent is to read.
void Reads::list(const Fetch& fetch) {
  const Edition& edition = sites_.editions[fetch.edition];
  each_place(fetch, [&](uint32_t neuron, uint32_t place) {
    units_.push_back({edition.extent_of(neuron), place});
  });
}

void Reads::post(std::span<Fetch* const> fetches) {
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
  message.step = present_step_;
  message.site = first.site;
  message.edition = first.edition;
  if (first.priority == Priority::prefetch) message.expires_step = first.step;
  const MessageId id = dispatcher_.post(message, units_, options_.memory.agent, options_.memory.pool, sink_);
  for (Fetch* fetch : fetches) fetch->message = id;
  of_message_.resize(std::max<size_t>(of_message_.size(), id.slot + 1u));
  of_message_[id.slot].assign(fetches.begin(), fetches.end());
}

void Reads::post_again(Fetch& fetch) {
  Fetch* const alone = &fetch;
  post({&alone, 1});
}

void Reads::demand(Fetch& fetch) {
  fetch.priority = Priority::demand;
  if (fetch.state == Fetch::State::reading) dispatcher_.raise(fetch.message, Priority::demand);
}

Reads::Started Reads::start_demanded(SiteId s, EditionId edition, uint32_t step, Plan& plan) {
  const Site& site = sites_[s];
  if (!site.added) return start_next(plan, s, edition, step, Priority::demand);
  asked_.clear();
  ask(s, edition, plan);
  const uint32_t demanded = kDemandedBytes / sites_.editions[edition].slot_bytes;
  asked_.front().most = std::min<size_t>(asked_.front().most, std::max(together(site), demanded));
  return start_runs(step, Priority::demand, 0);
}

Reads::Started Reads::start_next(Plan& plan, SiteId site, EditionId edition, uint32_t step,
                                 Priority priority) {
  started_.clear();
  if (!dispatcher_.can_post()) return started_;
  const bool keep = plan.neurons[plan.next].keep;
  if (!keep) {
    const uint32_t needed = priority == Priority::demand ? 1 : 1 + demand_blocks_;
    if (staging_.free_blocks() < needed) return started_;
  }
  Fetch& fetch = open(site, edition, step, priority);
  const size_t most = std::min(most_in_block(edition), most_units());
  const auto from = plan.neurons.begin() + static_cast<std::ptrdiff_t>(plan.next);
  const auto limit = from + static_cast<std::ptrdiff_t>(std::min(most, plan.neurons.size() - plan.next));
  const auto to = std::find_if(from, limit, [keep](const Planned& planned) { return planned.keep != keep; });
  fetch.neurons.resize(static_cast<size_t>(to - from));
  std::transform(from, to, fetch.neurons.begin(), [](const Planned& planned) { return planned.neuron; });
  plan.next += fetch.neurons.size();
  if (!keep) fetch.block = staging_.lease();
  started_.push_back(&fetch);
  post(started_);
  return started_;
}

Reads::Started Reads::start_next(Wish& wish) {
  asked_.clear();
  for (Wish::Part& part : wish.parts) {
    if (!part.plan.done()) ask(part.site, part.edition, part.plan);
  }
  const size_t blocks = staging_.blocks();
  const size_t most = std::min<size_t>(blocks > demand_blocks_ ? blocks - demand_blocks_ : 1,
                                       most_units() / together(sites_[asked_.front().site]));
  if (asked_.size() > most) asked_.resize(std::max<size_t>(1, most));
  const NextRuns& first = asked_.front();
  if (asked_.size() == 1 && !sites_[first.site].added)
    return start_next(*first.plan, first.site, first.edition, wish.step, Priority::prefetch);
  return start_runs(wish.step, Priority::prefetch, demand_blocks_);
}

void Reads::ask(SiteId site, EditionId edition, Plan& plan) {
  asked_.push_back({.site = site, .edition = edition, .plan = &plan, .most = most_in_block(edition)});
}

// The next read of those in `asked_`. What streams by takes a block of each edition, and leaves `spare` free;
// what is kept stands among it in the file, and is fetched by the same read.
Reads::Started Reads::start_runs(uint32_t step, Priority priority, uint32_t spare) {
  started_.clear();
  if (!dispatcher_.can_post()) return started_;
  take_runs(asked_, sites_[asked_.front().site].run, most_units());
  const auto blocks = std::ranges::count_if(asked_, &NextRuns::takes_streams);
  if (blocks != 0 && staging_.free_blocks() < static_cast<uint32_t>(blocks) + spare) return started_;
  for (const NextRuns& asked : asked_) {
    Fetch* kept = nullptr;
    Fetch* streamed = nullptr;
    for (const auto [neuron, keep] : asked.taken()) {
      Fetch*& fetch = keep ? kept : streamed;
      if (fetch == nullptr) {
        fetch = started_.emplace_back(&open(asked.site, asked.edition, step, priority));
        if (!keep) fetch->block = staging_.lease();
      }
      fetch->neurons.push_back(neuron);
    }
    asked.plan->next = asked.end;
  }
  post(started_);
  return started_;
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
