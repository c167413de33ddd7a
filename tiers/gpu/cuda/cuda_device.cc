#include "tiers/gpu/cuda/cuda_device.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "core/agent/joint_run.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/units.h"
#include "tiers/gpu/cuda/announce.h"

namespace tierd::cuda {
namespace {

// Oldest compute capability (major) that the kernels are compiled for.
constexpr int kLeastMajor = 8;
// For this long after it was begun, a request is polled instead of waited for: parking and waking cost about
// as much. A joint run may take this long for each of its sites.
constexpr uint64_t kSpinNs = 200'000;

std::string device_name(int ordinal) {
  return "device " + std::to_string(ordinal);
}

std::string bytes_text(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

}  // namespace

CudaDevice::CudaDevice(const DeviceOptions& options, PoolTable& pools, const Clock& clock,
                       std::unique_ptr<HostWork> host)
    : options_(options),
      pools_(pools),
      clock_(clock),
      host_(std::move(host)),
      registered_(pools, options.ordinal, options.table) {}

// Requests under way use memory that is about to be freed.
CudaDevice::~CudaDevice() {
  (void)cudaSetDevice(options_.ordinal);  // this thread may not be the one that created it
  (void)cudaDeviceSynchronize();
  for (Transfer& transfer : transfers_) transfer.forget();
}

Result<std::unique_ptr<CudaDevice>> CudaDevice::create(const DeviceOptions& options, PoolTable& pools,
                                                       const Clock& clock, const ComputePlan& plan,
                                                       std::unique_ptr<HostWork> host) {
  std::unique_ptr<CudaDevice> device(new CudaDevice(options, pools, clock, std::move(host)));
  TIERD_TRY(device->prepare(plan));
  pools.add_activations(options.number, device->given_.bytes());
  return device;
}

Status CudaDevice::no_room(const std::string& what, uint64_t bytes) const {
  size_t free = 0, whole = 0;
  (void)cudaGetLastError();
  (void)cudaMemGetInfo(&free, &whole);
  return Error{Code::no_space, options_.table + ".capacity",
               what + " take " + bytes_text(bytes) + " of the device, which has " + bytes_text(free) +
                   " of " + bytes_text(whole) + " free: lower it, or the context and the rows of a batch"};
}

Status CudaDevice::prepare(const ComputePlan& plan) {
  TIERD_TRY(choose_device(plan));
  recodings_ = recodings_of(plan);
  for (const auto& recoding : recodings_) {
    if (recoding && recoding->largest_piece() > Transfer::kBlockBytes) {
      return Error{Code::unsupported, options_.table + ".recode",
                   "rows of these experts are too long to be encoded anew on their way"};
    }
  }
  TIERD_TRY(open_signals());
  TIERD_ASSIGN(given_, ReservedMemory::reserve(buffer_offsets(plan).back()));
  TIERD_TRY(allocate(plan));
  return prepare_direct();
}

Error CudaDevice::unusable(const std::string& why) const {
  return {Code::unsupported, options_.table + ".backend", why};
}

// Selects the device for this thread and checks that it can compute the plan.
Status CudaDevice::choose_device(const ComputePlan& plan) {
  int devices = 0;
  const cudaError_t counted = cudaGetDeviceCount(&devices);
  if (counted != cudaSuccess)
    return unusable("no CUDA device answers (" + text_of(counted) +
                    "): install a driver that has CUDA 13, or say \"host\"");
  if (options_.ordinal >= devices)
    return Error{Code::invalid_argument, options_.table + ".device",
                 "there are " + std::to_string(devices) + " devices, numbered from 0"};
  cudaDeviceProp properties{};
  Outcome outcome;
  outcome.then([&] { return cudaSetDevice(options_.ordinal); });
  outcome.then([&] { return cudaGetDeviceProperties(&properties, options_.ordinal); });
  if (!outcome.ok())
    return unusable(device_name(options_.ordinal) + " does not answer (" + text_of(outcome.error()) + ")");
  backend_ = std::string("cuda, ") + properties.name + " (sm_" + std::to_string(properties.major) +
             std::to_string(properties.minor) + ")";
  if (properties.major < kLeastMajor)
    return unusable(std::string(properties.name) + " has compute capability " +
                    std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                    ", at least 8.0 is needed: say \"host\"");
  if (plan.attention.head_dim > kMostHeadDim)
    return unusable("heads of " + std::to_string(plan.attention.head_dim) +
                    " values are not computed there, at most " + std::to_string(kMostHeadDim) + " are");
  return {};
}

Status CudaDevice::open_signals() {
  ready_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  for (Descriptor& rung : rung_) {
    rung = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_event readable{.events = EPOLLIN, .data = {}};
    if (!ready_.open() || !rung.open() || epoll_ctl(ready_.get(), EPOLL_CTL_ADD, rung.get(), &readable) != 0)
      return Error{Code::io_error, "gpu", std::strerror(errno)};
  }
  return {};
}

Status CudaDevice::allocate(const ComputePlan& plan) {
  Outcome outcome;
  for (Stream& s : streams_) outcome.then([&] { return s.create(); });
  for (Event& e : events_) outcome.then([&] { return e.create(); });
  outcome.then([&] { return announcing_.create(); });
  if (!outcome.ok())
    return unusable(device_name(options_.ordinal) + " cannot be used (" + text_of(outcome.error()) + ")");

  const uint64_t all = CudaExecutor::device_bytes(plan) + options_.staging_bytes + options_.tensor_bytes +
                       kEngines * Transfer::device_bytes() + Expansion::device_bytes(plan) +
                       BatchProducts::device_bytes(plan, options_.blas_rows);
  auto batch = batch_products(plan);
  if (!batch.ok()) return no_room("KV cache, activations, staging and small tensors", all);
  outcome.then([&] { return CudaExecutor::create(plan, std::move(*batch), executor_); });
  for (Transfer& t : transfers_) outcome.then([&] { return t.create(); });
  outcome.then([&] { return expansion_.allocate(plan); });
  if (outcome.error() == cudaErrorMemoryAllocation)
    return no_room("KV cache, activations, staging and small tensors", all);
  if (!outcome.ok())
    return unusable(device_name(options_.ordinal) + " cannot be used (" + text_of(outcome.error()) + ")");
  const uint64_t end = options_.arena_bytes + options_.staging_bytes + options_.tensor_bytes;
  TIERD_ASSIGN(memory_, MappedMemory::reserve(end, options_.ordinal));
  if (!memory_->map({options_.arena_bytes, end}).ok())
    return no_room("KV cache, activations, staging and small tensors", all);
  executor_->set_memory(memory_->data(), options_.tensors);
  return {};
}

// Returns NULL if the library is not found: our own kernels then compute large batches too. Error: no_space.
Result<std::unique_ptr<BatchProducts>> CudaDevice::batch_products(const ComputePlan& plan) {
  auto batch = BatchProducts::create(plan, options_.blas_rows);
  if (batch.ok()) {
    if (*batch) backend_ += ", batches by " + (*batch)->name();
    return batch;
  }
  if (batch.code() == Code::no_space) return batch;
  say_once(options_.table + ": " + backend_ +
           ": batches of many rows are multiplied by its own kernels: " + batch.error().line());
  return std::unique_ptr<BatchProducts>();
}

Status CudaDevice::prepare_direct() {
  CudaDirectPath::Target target{.ordinal = options_.ordinal,
                                .name = options_.table + ": " + backend_,
                                .cufile = options_.cufile,
                                .memory = {memory_->data(), options_.arena_bytes + options_.staging_bytes}};
  target.map = [this](std::span<std::byte> part) {
    const auto begin = static_cast<uint64_t>(part.data() - memory_->data());
    return mapped({begin, begin + part.size()});
  };
  TIERD_ASSIGN(direct_, CudaDirectPath::create(std::move(target)));
  return {};
}

bool CudaDevice::mapped(const MappedMemory::Range& range) {
  if (memory_->map(range).ok()) return true;
  say_once(no_room("weights", memory_->mapped() + memory_->piece_bytes()).error().line());
  return false;
}

// Logs a line unless it repeats the last one, since each later message may fail in the same way.
void CudaDevice::say_once(const std::string& line) {
  if (said_ == line) return;
  said_ = line;
  say(line);
}

void CudaDevice::map(Running& running, const MappedMemory::Range& range) {
  if (!mapped(range)) running.done.status = DoneStatus::no_space;
}

// The first request reports an error of this function.
void CudaDevice::load(uint64_t offset, std::span<const std::byte> bytes) {
  Outcome outcome;
  (void)cudaSetDevice(options_.ordinal);
  if (!memory_->map({offset, offset + bytes.size()}).ok()) outcome.note(cudaErrorMemoryAllocation);
  outcome.then([&] {
    return cudaMemcpy(memory_->data() + offset, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
  });
  // cudaMemcpy returns when the bytes have left the host, and our streams do not wait for it.
  outcome.then([] { return cudaDeviceSynchronize(); });
  if (!outcome.ok() && !load_error_) load_error_ = outcome.error();
}

void CudaDevice::begin(Engine engine, const DeviceRequest& request) {
  Running& running = running_[static_cast<size_t>(engine)].emplace(Running{.request = request});
  running.done.start_ns = clock_.now_ns();
  if (lost_) {
    running.done.status = DoneStatus::lost;
    return;
  }
  running.outcome.note(cudaSetDevice(options_.ordinal));
  if (load_error_) running.outcome.note(*load_error_);
  switch (request.message.op) {
    case Op::run:
      run(running);
      break;
    case Op::move:
      move(engine, running);
      break;
    case Op::resize:
      resize(running);
      break;
    default:
      running.done.status = DoneStatus::invalid_argument;
  }
  if (!running.outcome.ok()) fail(running, running.outcome.error());
  // The event is recorded after an error too: the completion must not be reported while calls that were
  // queued before the error run.
  if (running.queued && !running.transfers && !lost_) {
    const cudaError_t error = cudaEventRecord(event(engine), stream(engine));
    if (error != cudaSuccess) fail(running, error);
  }
}

void CudaDevice::fail(Running& running, cudaError_t error) {
  lost_ = !answers(stream(Engine::compute)) || lost_;
  running.done.error = static_cast<uint16_t>(error);
  if (error == cudaErrorMemoryAllocation && !lost_) {
    running.done.status = DoneStatus::no_space;
    say_once(no_room("weights", memory_->mapped()).error().line());
    return;
  }
  running.done.status = lost_ ? DoneStatus::lost : DoneStatus::internal;
  say_once(options_.table + ": " + backend_ + (lost_ ? " is lost: " : " failed: ") + text_of(error));
}

void CudaDevice::run(Running& running) {
  const Message& message = running.request.message;
  const Payload& payload = running.request.payload;
  running.queued = true;
  const cudaStream_t on = stream(Engine::compute);
  running.outcome.then([&] {
    return lists_.send(
        message, payload, [&](uint32_t site) { return executor_->run_of_site(site); }, on);
  });
  executor_->begin_run();
  each_site(message, payload, [&](const Message& one, const Payload& its, size_t index) {
    if (!running.outcome.ok()) return;
    const RunLists& lists = lists_.lists(index);
    captured_.run(one, its, lists, on, running.outcome,
                  [&](Outcome& outcome) { executor_->run(one, its, lists, on, outcome); });
    running.done.bytes += executor_->touched(one, its);
  });
  give(payload.gives, message.rows, running.outcome);
  if (!running.outcome.ok()) return;
  running.done.n_done = static_cast<uint32_t>(payload.units.size());
}

// Gives go to pinned memory and are copied to the registered activations when the run has ended. The
// registered activations may be as large as the device's, and most of them are never given, so they are not
// pinned.
void CudaDevice::give(std::span<const Give> gives, uint32_t rows, Outcome& outcome) {
  uint64_t bytes = 0;
  for (const Give& give : gives) bytes += uint64_t{rows} * give.columns * sizeof(float);
  outcome.then([&] { return gives_.hold(bytes); });
  uint64_t at = 0;
  for (const Give& give : gives) {
    const uint64_t line = give.columns * sizeof(float);
    outcome.then([&] {
      return cudaMemcpy2DAsync(
          gives_.data() + at, line,
          executor_->activations() + give.place * kPlaceUnit + give.first * sizeof(float),
          give.stride * sizeof(float), line, rows, cudaMemcpyDeviceToHost, stream(Engine::compute));
    });
    at += rows * line;
  }
}

void CudaDevice::take_over(std::span<const Give> gives, uint32_t rows) {
  const std::byte* from = gives_.data();
  for (const Give& give : gives) {
    for (uint32_t r = 0; r < rows; ++r, from += give.columns * sizeof(float)) {
      const uint64_t at = give.place * kPlaceUnit + (uint64_t{r} * give.stride + give.first) * sizeof(float);
      std::memcpy(given_.data() + at, from, give.columns * sizeof(float));
    }
  }
}

void CudaDevice::resize(Running& running) {
  std::vector<MappedMemory::Range> ranges;
  uint64_t end = 0;
  for (const Unit& unit : running.request.payload.units) {
    const MappedMemory::Range range{unit.unit * kPlaceUnit, unit.place * kPlaceUnit};
    ranges.push_back(range);
    if (range.begin < end || range.begin > range.end || range.end > options_.arena_bytes) {
      running.done.status = DoneStatus::invalid_argument;
      running.done.first_bad = static_cast<uint32_t>(ranges.size() - 1);
      return;
    }
    end = range.end;
  }
  running.done.n_done = static_cast<uint32_t>(ranges.size());
  if (memory_->use(options_.arena_bytes, ranges).ok()) return;
  uint64_t bytes = 0;
  for (const MappedMemory::Range& range : ranges) bytes += range.end - range.begin;
  say_once(no_room("weights", bytes).error().line());
  running.done.status = DoneStatus::no_space;
}

// Until the descriptor is announced, no wake-up would follow, so the caller polls.
bool CudaDevice::soon(Engine engine) const {
  const std::optional<Running>& running = running_[static_cast<size_t>(engine)];
  return running && !running->announced;
}

// Returns whether the device has ended the request, or never will.
bool CudaDevice::arrived(Engine engine, Running& running) {
  if (!running.queued || lost_) return true;
  if (running.transfers) {
    bool over = false;
    const cudaError_t error =
        running.expands ? advance(engine, running) : transfer(engine).advance(stream(engine), over);
    if (error == cudaSuccess) return over;
    fail(running, error);
    running.expands ? expansion_.stop(transfer(engine)) : transfer(engine).stop();
    return lost_;
  }
  const cudaError_t state = cudaEventQuery(event(engine));
  if (state == cudaErrorNotReady) return false;
  if (state != cudaSuccess) fail(running, state);
  return true;
}

void CudaDevice::announce(Engine engine, Running& running) {
  const uint64_t spins = std::max<uint64_t>(running.request.message.n_sites, 1) * kSpinNs;
  if (running.announced || clock_.now_ns() - running.done.start_ns < spins) return;
  running.announced = true;
  const cudaEvent_t awaited = running.transfers ? transfer(engine).next_event() : event(engine);
  cuda::announce(announcing_.get(), awaited, rung_[static_cast<size_t>(engine)].get());
}

std::optional<Done> CudaDevice::over(Engine engine) {
  std::optional<Running>& running = running_[static_cast<size_t>(engine)];
  TIERD_CHECK(running.has_value());
  // Clears the announcement; a transfer announces its next event anew.
  uint64_t rings = 0;
  if (running->announced &&
      ::read(rung_[static_cast<size_t>(engine)].get(), &rings, sizeof rings) == sizeof rings)
    running->announced = false;
  const bool there = arrived(engine, *running);
  if (lost_) transfer(engine).forget();
  if (there) return end(std::move(*std::exchange(running, std::nullopt)));
  announce(engine, *running);
  return std::nullopt;
}

AgentCounts CudaDevice::counts() const {
  AgentCounts counts;
  for (const Transfer& transfer : transfers_) {
    counts.move.read_in_place += transfer.counts().read_in_place;
    counts.move.gathered += transfer.counts().gathered;
  }
  counts.run = captured_.counts();
  return counts;
}

Done CudaDevice::end(Running running) {
  if (lost_) running.done.status = DoneStatus::lost;
  const Message& message = running.request.message;
  if (running.done.status == DoneStatus::ok) {
    const bool malformed = message.op == Op::run ? executor_->malformed()
                                                 : (message.flags & kRecode) != 0 && expansion_.malformed();
    if (malformed) {
      running.done.status = DoneStatus::corrupt;
      running.done.n_done = 0;
      running.done.bytes = 0;
      // The device does not report which site of a joint run it was.
      running.done.first_bad = message.n_sites;
    } else if (message.op == Op::run) {
      take_over(running.request.payload.gives, message.rows);
    }
  }
  running.done.done_ns = clock_.now_ns();
  return running.done;
}

void CudaDevice::move(Engine engine, Running& running) {
  const Message& message = running.request.message;
  if ((message.flags & kRecode) == 0) return move_slots(engine, running);
  if (message.edition < recodings_.size() && recodings_[message.edition])
    return recode(engine, running, *recodings_[message.edition]);
  expand(engine, running);
}

// Moves the units before the first one that cannot be moved.
void CudaDevice::move_slots(Engine engine, Running& running) {
  const auto& [message, payload, since] = running.request;
  const MovedSlots slots{payload.units, message.unit_bytes, payload.lengths};
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  const bool inside = message.from == options_.memory;
  const std::span<const std::byte> source = inside ? std::span<const std::byte>(memory_->data(), end)
                                                   : std::span<const std::byte>(pools_.memory(message.from));
  size_t good = 0;
  for (; good < payload.units.size(); ++good) {
    const Unit& unit = payload.units[good];
    const uint64_t to = unit.place * kPlaceUnit, bytes = slots.length(good);
    if (unit.unit * kPlaceUnit + bytes > source.size() || to + bytes > end) {
      running.done.status = DoneStatus::invalid_argument;
      running.done.first_bad = static_cast<uint32_t>(good);
      break;
    }
    if (inside) map(running, {unit.unit * kPlaceUnit, unit.unit * kPlaceUnit + bytes});
    map(running, {to, to + bytes});
    if (running.done.status != DoneStatus::ok) break;
    running.done.bytes += bytes;
  }
  running.done.n_done = static_cast<uint32_t>(good);
  if (inside) {
    // Copies are queued one after the other: a slot may be emptied by one copy and filled by the next.
    running.queued = good != 0;
    for (size_t i = 0; i < good; ++i) {
      const Unit& unit = slots.units[i];
      if (unit.unit == unit.place) continue;
      running.outcome.then([&] {
        return cudaMemcpyAsync(memory_->data() + unit.place * kPlaceUnit,
                               memory_->data() + unit.unit * kPlaceUnit, slots.length(i),
                               cudaMemcpyDeviceToDevice, stream(engine));
      });
    }
  } else if (good != 0) {
    running.queued = running.transfers = true;
    transfer(engine).begin(slots.first(good), source.data(), memory_->data(), *host_);
    bool over = false;
    running.outcome.then([&] { return transfer(engine).advance(stream(engine), over); });
  }
}

void CudaDevice::refuse(Running& running, size_t unit) {
  running.done.status = DoneStatus::invalid_argument;
  running.done.first_bad = static_cast<uint32_t>(unit);
}

void CudaDevice::recode(Engine engine, Running& running, const NeuronRecoding& recoding) {
  const auto& [message, payload, since] = running.request;
  const std::span<const std::byte> source = pools_.memory(message.from);
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  if (message.from == options_.memory || payload.neurons.size() != payload.units.size() ||
      message.unit_bytes < recoding.from_bytes())
    return refuse(running, 0);
  for (size_t i = 0; i < payload.units.size(); ++i) {
    const uint64_t from = payload.units[i].unit * kPlaceUnit, to = payload.units[i].place * kPlaceUnit;
    if (from + recoding.from_bytes() > source.size() || to + recoding.to_bytes() > end)
      return refuse(running, i);
    map(running, {to, to + recoding.to_bytes()});
    if (running.done.status != DoneStatus::ok) return;
  }
  running.done.n_done = static_cast<uint32_t>(payload.units.size());
  running.done.bytes = payload.units.size() * recoding.to_bytes();
  if (payload.units.empty()) return;
  running.queued = running.transfers = true;
  transfer(engine).begin(payload.units, recoding, source.data(), memory_->data(), *host_);
  bool over = false;
  running.outcome.then([&] { return transfer(engine).advance(stream(engine), over); });
}

void CudaDevice::expand(Engine engine, Running& running) {
  const auto& [message, payload, since] = running.request;
  const std::span<const std::byte> source = pools_.memory(message.from);
  const uint64_t end = options_.arena_bytes + options_.staging_bytes;
  if (engine != Engine::copy || message.from == options_.memory || !expansion_.has(message.edition) ||
      payload.neurons.size() != payload.units.size())
    return refuse(running, 0);
  for (size_t i = 0; i < payload.units.size(); ++i) {
    const Unit& unit = payload.units[i];
    const uint32_t neuron = payload.neurons[i];
    if (neuron >= expansion_.neurons(message.edition)) return refuse(running, i);
    const uint64_t from = unit.unit * kPlaceUnit, to = unit.place * kPlaceUnit;
    const uint64_t landing_end = to + expansion_.dense_bytes(message.edition, neuron);
    if (expansion_.compressed_bytes(message.edition, neuron) > message.unit_bytes ||
        from + message.unit_bytes > source.size() || landing_end > end)
      return refuse(running, i);
    map(running, {to, landing_end});
    if (running.done.status != DoneStatus::ok) return;
    running.done.bytes += expansion_.crossing_bytes(message.edition, neuron);
  }
  running.done.n_done = static_cast<uint32_t>(payload.units.size());
  if (payload.units.empty()) return;
  running.outcome.then([&, &message = message, &payload = payload] {
    return expansion_.begin({.edition = message.edition,
                             .units = payload.units,
                             .neurons = payload.neurons,
                             .bytes = message.unit_bytes,
                             .source = source.data(),
                             .memory = memory_->data()},
                            *host_, stream(engine));
  });
  if (!running.outcome.ok()) return;
  running.queued = running.transfers = running.expands = true;
  running.outcome.then([&] { return advance(engine, running); });
}

// When the whole move is queued, records the event that signals its end.
cudaError_t CudaDevice::advance(Engine engine, Running& running) {
  bool queued = false;
  const cudaError_t error = expansion_.advance(transfer(engine), stream(engine), queued);
  if (error != cudaSuccess || !queued) return error;
  running.transfers = running.expands = false;
  return cudaEventRecord(event(engine), stream(engine));
}

}  // namespace tierd::cuda
