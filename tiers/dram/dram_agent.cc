#include "tiers/dram/dram_agent.h"

#include <algorithm>
#include <cstring>

#include "core/base/time.h"
#include "core/message/counts.h"

namespace tierd {
namespace {

// Workers share the arena in pieces of this size, and commit about so many bytes in a nanosecond.
constexpr uint64_t kCommittedAtOnce = uint64_t{32} << 20;
constexpr uint64_t kCommittedInNs = 4;

}  // namespace

Result<std::unique_ptr<DramAgent>> DramAgent::create(const Options& options, PoolTable& pools,
                                                     ComputePlan plan, const ComputeKernels& kernels,
                                                     std::unique_ptr<Team> team) {
  TIERD_ASSIGN(Executor executor, Executor::create(std::move(plan), kernels, *team));
  TIERD_ASSIGN(ReservedMemory memory,
               ReservedMemory::reserve(options.arena_bytes + options.staging_bytes + options.tensor_bytes));
  return std::unique_ptr<DramAgent>(
      new DramAgent(options, pools, std::move(team), std::move(executor), std::move(memory)));
}

DramAgent::DramAgent(Options options, PoolTable& pools, std::unique_ptr<Team> team, Executor executor,
                     ReservedMemory memory)
    : options_(std::move(options)),
      pools_(pools),
      team_(std::move(team)),
      executor_(std::move(executor)),
      memory_(std::move(memory)) {
  pools.add(options_.number, memory_.bytes());
  pools.add(options_.number, executor_.activations());
  // What follows the arena always is: a device may know its pages.
  const ReservedMemory::Range ranges[] = {{0, options_.arena_bytes},
                                          {options_.arena_bytes, memory_.bytes().size()}};
  memory_.use(memory_.bytes().size(), ranges);
  for (TensorId id = 0; id < options_.tensors.size(); ++id) {
    executor_.set_tensor(id, reinterpret_cast<const float*>(memory_.data() + options_.tensors[id]));
  }
}

Submit DramAgent::submit(const Message& message) {
  // A credit comes back with the polled completion.
  if (queue_.size() + done_.size() >= options_.credits) return Submit::busy;
  queue_.push_back(message);
  return Submit::ok;
}

Drive DramAgent::drive() {
  if (queue_.empty()) return Drive::idle;
  const Message message = queue_.front();
  queue_.pop_front();
  done_.push_back(execute(message));
  return Drive::busy;
}

size_t DramAgent::poll(std::span<Done> done) {
  size_t n = 0;
  for (; n < done.size() && !done_.empty(); ++n) {
    done[n] = done_.front();
    done_.pop_front();
  }
  return n;
}

Done DramAgent::execute(const Message& message) {
  Done done;
  done.id = message.id;
  done.engine = message.engine;
  done.start_ns = now_ns();
  switch (message.op) {
    case Op::compute:
    case Op::run: {
      const std::span<const std::byte> in = pools_.resolve(message.in);
      const std::span rows{reinterpret_cast<const RowInfo*>(in.data()), message.rows};
      if ((message.flags & kRunBefore) != 0) executor_.before(message.site, rows);
      if ((message.flags & kPartial) != 0) executor_.clear(message.site, message.rows);
      const std::span<const Unit> units = PoolTable::units(pools_.resolve(message.list));
      if (!units.empty()) {
        Executor::Asked asked;
        if (message.aux.bytes != 0)
          asked.row_masks = reinterpret_cast<const uint64_t*>(pools_.resolve(message.aux).data());
        asked.measure = (message.flags & kMeasure) != 0;
        done.bytes = executor_.neurons(message.site, message.edition, rows, units, memory_.data(), asked);
        done.n_done = static_cast<uint32_t>(units.size());
      }
      if ((message.flags & kRunAfter) != 0) executor_.after(message.site, rows);
      break;
    }
    case Op::copy: {
      const std::span<const std::byte> in = pools_.resolve(message.in);
      const std::span rows{reinterpret_cast<const RowInfo*>(in.data()), message.rows};
      const std::span<const std::byte> list = pools_.resolve(message.list);
      const UnitList& from = PoolTable::header(list);
      const std::byte* other = pools_.resolve(from.agent, from.pool, 0, executor_.activations().size());
      if ((message.flags & kInput) != 0) {
        executor_.take_input(message.site, message.rows, other);
      } else {
        executor_.take_results(message.site, rows, PoolTable::units(list), other);
      }
      break;
    }
    case Op::move:
      move(message, done);
      break;
    case Op::resize:
      resize(message, done);
      break;
    case Op::stats:
      if (!write_counts(message.aux)) done.status = DoneStatus::invalid_argument;
      break;
    case Op::cancel:
    case Op::stop:
      break;
    default:
      done.status = DoneStatus::invalid_argument;
  }
  done.done_ns = now_ns();
  return done;
}

// From any memory of this process into this agent's, in order: a slot may be emptied by one and filled by the
// next.
void DramAgent::move(const Message& message, Done& done) {
  const uint64_t bytes = message.aux.bytes;
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  const bool known = message.in.agent == options_.number ? message.in.pool == 0
                                                         : message.in.pool < pools_.pools(message.in.agent);
  const std::span<const std::byte> source =
      known ? pools_.memory(message.in.agent, message.in.pool) : std::span<const std::byte>();
  for (const Unit& unit : PoolTable::units(pools_.resolve(message.list))) {
    const uint64_t from = unit.unit * kSpanUnit, to = unit.offset * kSpanUnit;
    if (from + bytes > source.size() || to + bytes > end) {
      done.status = DoneStatus::invalid_argument;
      done.first_bad = done.n_done;
      return;
    }
    std::memmove(memory_.data() + to, source.data() + from, bytes);
    ++done.n_done;
    done.bytes += bytes;
  }
}

void DramAgent::resize(const Message& message, Done& done) {
  std::vector<ReservedMemory::Range> ranges;
  uint64_t end = 0;
  for (const Unit& unit : PoolTable::units(pools_.resolve(message.list))) {
    const ReservedMemory::Range range{unit.unit * kSpanUnit, unit.offset * kSpanUnit};
    ranges.push_back(range);
    if (range.begin < end || range.begin > range.end || range.end > options_.arena_bytes) {
      done.status = DoneStatus::invalid_argument;
      done.first_bad = static_cast<uint32_t>(ranges.size() - 1);
      return;
    }
    end = range.end;
  }
  done.n_done = static_cast<uint32_t>(ranges.size());
  memory_.use(options_.arena_bytes, ranges);
  commit(ranges);
}

void DramAgent::commit(std::span<const ReservedMemory::Range> ranges) {
  std::vector<ReservedMemory::Range> pieces;
  uint64_t sum = 0;
  for (const ReservedMemory::Range& range : ranges) {
    for (uint64_t begin = range.begin; begin < range.end; begin += kCommittedAtOnce)
      pieces.push_back({begin, std::min(begin + kCommittedAtOnce, range.end)});
    sum += range.end - range.begin;
  }
  team_->run(pieces.size(), 1, sum / kCommittedInNs, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) memory_.commit(pieces[i]);
  });
}

bool DramAgent::write_counts(const Span& out) const {
  if (out.bytes == 0) return true;
  if (out.bytes < sizeof(AgentCounts)) return false;
  const AgentCounts now = counts();
  std::memcpy(pools_.resolve(out).data(), &now, sizeof now);
  return true;
}

AgentCounts DramAgent::counts() const {
  AgentCounts now;
  now.compute = {team_->launches(), team_->wake_ups(), executor_.activation_error()};
  return now;
}

uint64_t DramAgent::service_ns(const Message& message) const {
  const auto at_bandwidth = [this](uint64_t bytes) {
    return static_cast<uint64_t>(static_cast<double>(bytes) / options_.bytes_per_second * 1e9);
  };
  if (message.op == Op::move) {
    return at_bandwidth(PoolTable::units(pools_.resolve(message.list)).size() * message.aux.bytes);
  }
  if (message.op != Op::compute && message.op != Op::copy) return 0;
  const SiteWork& site = executor_.plan().sites[message.site];
  if (message.op == Op::copy) {
    const bool input = (message.flags & kInput) != 0;
    return at_bandwidth(uint64_t{message.rows} * (input ? inputs(site.cut) : outputs(site.cut)) *
                        sizeof(float));
  }
  const Encodings& encodings = executor_.plan().editions[message.edition];
  uint64_t bytes = 0;
  for (const Unit& unit : PoolTable::units(pools_.resolve(message.list)))
    bytes += neuron_bytes(site.cut, encodings, unit.unit);
  return at_bandwidth(bytes);
}

}  // namespace tierd
