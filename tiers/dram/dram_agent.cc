#include "tiers/dram/dram_agent.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/agent/counts.h"
#include "core/agent/joint_run.h"
#include "core/base/align.h"
#include "core/base/time.h"
#include "core/system/cores.h"
#include "tiers/compute/bitmap.h"
#include "tiers/dram/work_cost.h"

namespace tierd {
namespace {

// Workers commit the arena in pieces of this size, at about kCommittedInNs bytes a nanosecond.
constexpr uint64_t kCommittedAtOnce = uint64_t{32} << 20;
constexpr uint64_t kCommittedInNs = 4;
// Encoding weights anew takes a core about this many times as long as reading them.
constexpr uint64_t kRecodingOfReading = 8;

}  // namespace

DramAgent::Options DramAgent::Options::of(const AgentContext& context) {
  const ComputeTask& task = *context.compute;
  std::vector<uint32_t> cores = task.cores;
  if (cores.empty()) {
    // Unbound threads are assumed to run on the first cores.
    cores.resize(task.threads);
    std::iota(cores.begin(), cores.end(), 0U);
  }
  return {.number = context.number,
          .memory = task.memory,
          .arena_bytes = task.arena_bytes,
          .staging_bytes = task.staging_bytes,
          .tensor_bytes = task.tensor_bytes,
          .tensors = task.tensors,
          .cores = std::move(cores)};
}

Result<std::unique_ptr<DramAgent>> DramAgent::create(const Options& options, PoolTable& pools,
                                                     ComputePlan plan, const ComputeKernels& kernels,
                                                     std::unique_ptr<Team> team) {
  TIERD_ASSIGN(Executor executor, Executor::create(std::move(plan), kernels, *team));
  TIERD_ASSIGN(ReservedMemory memory,
               ReservedMemory::reserve(options.arena_bytes + options.staging_bytes + options.tensor_bytes));
  interleave_over_nodes(memory.bytes(), options.cores);
  return std::unique_ptr<DramAgent>(
      new DramAgent(options, pools, std::move(team), std::move(executor), std::move(memory)));
}

DramAgent::DramAgent(Options options, PoolTable& pools, std::unique_ptr<Team> team, Executor executor,
                     ReservedMemory memory)
    : options_(std::move(options)),
      pools_(pools),
      team_(std::move(team)),
      executor_(std::move(executor)),
      recodings_(recodings_of(executor_.plan())),
      memory_(std::move(memory)) {
  pools.add_memory(options_.memory, memory_.bytes());
  pools.add_activations(options_.number, executor_.activations());
  // The range behind the arena is always in use: a device may know its pages.
  const ReservedMemory::Range ranges[] = {{0, options_.arena_bytes},
                                          {options_.arena_bytes, memory_.bytes().size()}};
  memory_.use(memory_.bytes().size(), ranges);
  keep_pages({});
  for (TensorId id = 0; id < options_.tensors.size(); ++id) {
    executor_.set_tensor(id, reinterpret_cast<const float*>(memory_.data() + options_.tensors[id]));
  }
}

// The memory's pages go.
DramAgent::~DramAgent() {
  pools_.keep_pages(options_.memory, {});
}

// The staging's pages stay as well, to the end of its last page.
void DramAgent::keep_pages(std::vector<PageRange> of_arena) {
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  if (options_.staging_bytes != 0)
    of_arena.push_back({options_.arena_bytes, align_up(end, kDirectIoAlignment)});
  pools_.keep_pages(options_.memory, std::move(of_arena));
}

Submit DramAgent::submit(const Message& message, const Payload& payload) {
  // A credit is free again once its completion has been polled.
  if (queue_.size() + done_.size() >= options_.credits) return Submit::busy;
  queue_.push_back({message, payload});
  return Submit::ok;
}

Drive DramAgent::drive() {
  if (queue_.empty()) return Drive::idle;
  const Request request = queue_.front();
  queue_.pop_front();
  done_.push_back(execute(request));
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

Done DramAgent::execute(const Request& request) {
  Done done;
  done.id = request.message.id;
  done.lane = request.message.lane;
  done.start_ns = now_ns();
  switch (request.message.op) {
    case Op::run:
      if (failed_.forbid(request.message)) {
        done.status = DoneStatus::cancelled;
      } else {
        const auto run_one = [&](const Message& one, const Payload& its, size_t index) {
          if (done.status == DoneStatus::ok) run(one, its, done);
          if (done.status == DoneStatus::ok) done.first_bad = static_cast<uint32_t>(index + 1);
        };
        each_site(request.message, request.payload, run_one);
        if (done.status == DoneStatus::ok) done.first_bad = 0;
      }
      break;
    case Op::move:
      if ((request.message.flags & kRecode) == 0) {
        move(request, done);
      } else if (encodes(request.message)) {
        recode(request, done);
      } else {
        expand(request, done);
      }
      break;
    case Op::resize:
      resize(request.payload.units, done);
      break;
    case Op::raise:
    case Op::cancel:
      break;
    default:
      done.status = DoneStatus::invalid_argument;
  }
  failed_.note(request.message, done.status);
  done.done_ns = now_ns();
  return done;
}

void DramAgent::run(const Message& message, const Payload& payload, Done& done) {
  if ((message.flags & kRunBefore) != 0) executor_.before(message.site, payload.rows);
  executor_.take_input(message.site, message.rows, payload.takes);
  if ((message.flags & kPartial) != 0) executor_.clear(message.site, message.rows);
  if (!payload.units.empty()) {
    Executor::Asked asked;
    if (!payload.masks.empty()) asked.row_masks = payload.masks.data();
    asked.measure = (message.flags & kMeasure) != 0;
    asked.tell = (message.flags & kTell) != 0;
    const std::optional<uint64_t> bytes =
        executor_.neurons(message.site, message.edition, payload.rows, payload.units, memory_.data(), asked);
    if (!bytes) {
      done.status = DoneStatus::corrupt;
      return;
    }
    done.bytes += *bytes;
    done.n_done += static_cast<uint32_t>(payload.units.size());
  }
  executor_.take_results(message.site, payload.rows, payload.takes);
  if ((message.flags & kRunAfter) != 0) executor_.after(message.site, payload.rows);
}

// In order: a slot may be emptied by one copy and filled by the next.
void DramAgent::move(const Request& request, Done& done) {
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  const std::span<const std::byte> source = pools_.memory(request.message.from);
  for (const Unit& unit : request.payload.units) {
    const uint64_t bytes = request.payload.moved_bytes(request.message, done.n_done);
    const uint64_t from = unit.unit * kPlaceUnit, to = unit.place * kPlaceUnit;
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

// Expands bitmaps of another memory to the edition that they were made of. That memory must not be this one,
// so that no copy reads bytes that another has written.
void DramAgent::expand(const Request& request, Done& done) {
  const auto& [message, payload] = request;
  const ComputePlan& plan = executor_.plan();
  const MadeNeurons* const expanded = plan.expanded_of(message.edition);
  const CompressedNeurons* const compressed =
      expanded != nullptr ? plan.compressed_of(expanded->of) : nullptr;
  const std::span<const std::byte> source = pools_.memory(message.from);
  const std::span<std::byte> arena = memory_.bytes().first(options_.arena_bytes + options_.staging_bytes);
  if (compressed == nullptr || message.from == options_.memory ||
      payload.neurons.size() != payload.units.size()) {
    done.status = DoneStatus::invalid_argument;
    return;
  }
  const Cut& cut = plan.sites[expanded->site].cut;
  const Encodings& encodings = plan.editions[message.edition];
  std::vector<DoneStatus> ends(payload.units.size(), DoneStatus::ok);
  const auto expand_one = [&, &payload = payload](uint64_t i) {
    const Unit& unit = payload.units[i];
    const uint32_t neuron = payload.neurons[i];
    const uint64_t from = unit.unit * kPlaceUnit, to = unit.place * kPlaceUnit;
    if (neuron >= compressed->bytes.size()) return DoneStatus::invalid_argument;
    const uint64_t bytes = compressed->bytes[neuron], dense = neuron_bytes(cut, encodings, neuron);
    if (from + bytes > source.size() || to + dense > arena.size()) return DoneStatus::invalid_argument;
    const bool good = expand_neuron(executor_.kernels().expand_bitmap, compressed->bitmap,
                                    source.subspan(from, bytes), arena.subspan(to, dense));
    return good ? DoneStatus::ok : DoneStatus::corrupt;
  };
  team_->run(ends.size(), 1, cost_of(payload.moved_bytes(message), 1),
             [&](uint64_t first, uint64_t last, uint32_t) {
               for (uint64_t i = first; i < last; ++i) ends[i] = expand_one(i);
             });
  for (uint32_t i = 0; i < ends.size(); ++i) {
    if (ends[i] == DoneStatus::ok) {
      ++done.n_done;
      done.bytes += payload.moved_bytes(message, i);
    } else if (done.status == DoneStatus::ok) {
      done.status = ends[i];
      done.first_bad = i;
    }
  }
}

// Encodes neurons of another memory anew, to an edition of fewer bits.
void DramAgent::recode(const Request& request, Done& done) {
  const auto& [message, payload] = request;
  const NeuronRecoding& recoding = *recoding_of(message.edition);
  const std::span<const std::byte> source = pools_.memory(message.from);
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  if (message.from == options_.memory || payload.neurons.size() != payload.units.size() ||
      message.unit_bytes < recoding.from_bytes()) {
    done.status = DoneStatus::invalid_argument;
    return;
  }
  size_t good = 0;
  for (; good < payload.units.size(); ++good) {
    const Unit& unit = payload.units[good];
    if (unit.unit * kPlaceUnit + recoding.from_bytes() > source.size() ||
        unit.place * kPlaceUnit + recoding.to_bytes() > end) {
      done.status = DoneStatus::invalid_argument;
      done.first_bad = static_cast<uint32_t>(good);
      break;
    }
  }
  const size_t pieces = recoding.pieces();
  team_->run(good * pieces, 1, cost_of(good * recoding.from_bytes(), 1) * kRecodingOfReading,
             [&, &payload = payload](uint64_t first, uint64_t last, uint32_t) {
               for (uint64_t i = first; i < last; ++i) {
                 const Unit& unit = payload.units[i / pieces];
                 const NeuronRecoding::Piece piece = recoding.piece(i % pieces);
                 recoding.encode(executor_.kernels(), i % pieces,
                                 source.data() + unit.unit * kPlaceUnit + piece.from,
                                 memory_.data() + unit.place * kPlaceUnit + piece.to);
               }
             });
  done.n_done = static_cast<uint32_t>(good);
  done.bytes = good * recoding.to_bytes();
}

uint64_t DramAgent::crossing_bytes(const Message& message, const Payload& payload) const {
  if (encodes(message)) return payload.units.size() * recoding_of(message.edition)->to_bytes();
  return payload.moved_bytes(message);
}

void DramAgent::resize(std::span<const Unit> in_use, Done& done) {
  std::vector<ReservedMemory::Range> ranges;
  uint64_t end = 0;
  for (const Unit& unit : in_use) {
    const ReservedMemory::Range range{unit.unit * kPlaceUnit, unit.place * kPlaceUnit};
    ranges.push_back(range);
    if (range.begin < end || range.begin > range.end || range.end > options_.arena_bytes) {
      done.status = DoneStatus::invalid_argument;
      done.first_bad = static_cast<uint32_t>(ranges.size() - 1);
      return;
    }
    end = range.end;
  }
  done.n_done = static_cast<uint32_t>(ranges.size());
  ReservedMemory::Pages pages = ReservedMemory::pages_of(ranges);
  keep_pages(std::move(pages.inner));
  memory_.use(options_.arena_bytes, ranges);
  commit(ranges);
  keep_pages(std::move(pages.all));
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

AgentCounts DramAgent::counts() const {
  AgentCounts now;
  now.compute = {team_->launches(), team_->wake_ups(), executor_.activation_error()};
  return now;
}

}  // namespace tierd
