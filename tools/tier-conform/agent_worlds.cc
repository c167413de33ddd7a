// The worlds that tier-conform puts around an agent. All follow from a seed, and watch every byte of the
// memory that messages name.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/base/checksum.h"
#include "core/base/random.h"
#include "core/layout/row_group.h"
#include "tools/tier-conform/agent_suite.h"

namespace tierd {
namespace {

constexpr uint16_t kAgent = 1;
constexpr int kUntouched = 0xEE;

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};

// Places for what messages name: a list, what follows it (rows, destinations), each place for one message. A
// place rests after its message before it is used again, so that late writes show.
class Places {
 public:
  // Memory is committed by use.
  Places(uint32_t most, uint64_t list_bytes, uint64_t bytes)
      : list_bytes_(list_bytes),
        bytes_(bytes),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kDirectIoAlignment, most * bytes))),
        most_(most),
        lists_(most) {}

  std::span<std::byte> memory() const { return {memory_.get(), most_ * bytes_}; }
  // Set-up: how many are used; more than are ever in flight.
  bool use(uint32_t n) {
    if (n > most_) return false;
    for (uint32_t i = 0; i < n; ++i) {
      std::memset(at(i), kUntouched, bytes_);
      free_.push_back(i);
    }
    return true;
  }
  uint32_t take() {
    TIERD_CHECK(!free_.empty());
    const uint32_t place = free_.front();
    free_.pop_front();
    look_at(place);
    return place;
  }
  std::byte* at(uint32_t place) const { return memory_.get() + place * bytes_; }
  Span span(uint32_t place, uint64_t offset, uint64_t bytes) const {
    return {kKernel, 0, static_cast<uint32_t>((place * bytes_ + offset) / kSpanUnit),
            static_cast<uint32_t>(bytes)};
  }
  uint32_t place_of(const Message& message) const {
    return static_cast<uint32_t>(message.list.offset * kSpanUnit / bytes_);
  }
  // The list is written: it stays as it is until the message is over.
  void seal(uint32_t place) { lists_[place].assign(at(place), at(place) + list_bytes_); }
  void release(uint32_t place) {
    if (std::memcmp(at(place), lists_[place].data(), list_bytes_) != 0)
      trespass_ = "the list of a message has changed";
    std::memset(at(place), kUntouched, bytes_);
    free_.push_back(place);
  }
  static bool untouched(std::span<const std::byte> memory) {
    // The first byte is right and each one equals the next: fast under sanitizers too.
    return memory.empty() || (memory[0] == std::byte{kUntouched} &&
                              std::memcmp(memory.data(), memory.data() + 1, memory.size() - 1) == 0);
  }
  std::string trespass() {
    for (const uint32_t place : free_) look_at(place);
    return trespass_;
  }

 private:
  void look_at(uint32_t place) {
    if (!untouched({at(place), bytes_})) trespass_ = "memory was written to after its message had completed";
  }

  const uint64_t list_bytes_;
  const uint64_t bytes_;
  const std::unique_ptr<std::byte[], FreeMemory> memory_;
  const uint32_t most_;
  std::vector<std::vector<std::byte>> lists_;  // [places]
  std::deque<uint32_t> free_;                  // the longest free first
  std::string trespass_;
};

// What all worlds share.
class PlacedWorld : public AgentWorld {
 public:
  Agent& agent() final { return *made_.agent; }
  std::string trespass() final { return places_.trespass(); }
  Message control(Op op, const MessageId& target) override {
    const uint32_t place = places_.take();
    Message message = this->message(op, place, sizeof target);
    std::memcpy(places_.at(place), &target, sizeof target);
    places_.seal(place);
    return message;
  }

 protected:
  static constexpr uint32_t kMostPlaces = 1024;

  PlacedWorld(uint64_t seed, uint64_t list_bytes, uint64_t place_bytes)
      : random_(seed), places_(kMostPlaces, list_bytes, place_bytes) {}

  // The agent is there, and as many places as it has credits, and as many that rest.
  Status make(const AgentChoice& choice, AgentContext& context) {
    pools_.add(kKernel, places_.memory());
    TIERD_ASSIGN(made_, make_agent(choice, context));
    if (places_.use(2 * std::min(agent().credits(), kMostPlaces) + 8)) return {};
    return Error{Code::unsupported, choice.origin,
                 fmt::format("has {} credits, {} can be tried", agent().credits(), kMostPlaces / 2 - 4)};
  }
  // Before what the agent was given goes.
  void end() { made_ = {}; }
  Message message(Op op, uint32_t place, uint64_t list_bytes) {
    Message message;
    message.id = {.slot = place, .generation = ++generation_};
    message.op = op;
    message.agent = kAgent;
    message.list = places_.span(place, 0, list_bytes);
    return message;
  }
  void write_list(uint32_t place, uint16_t agent, std::span<const Unit> units) {
    const UnitList header = {static_cast<uint32_t>(units.size()), agent, 0};
    std::memcpy(places_.at(place), &header, sizeof header);
    std::ranges::copy(std::as_bytes(units), places_.at(place) + sizeof header);
    places_.seal(place);
  }

  PoolTable pools_;
  Random random_;
  Places places_;

 private:
  uint32_t generation_ = 0;
  MadeAgent made_;
};

// ---- an agent that reads

// A temporary file of extents, some side by side, some with gaps between: whole blocks, or packed.
class ReadWorld final : public PlacedWorld {
 public:
  static Result<std::unique_ptr<AgentWorld>> blocks(const AgentChoice& choice, uint64_t seed) {
    return create(choice, seed, kBlock);
  }
  static Result<std::unique_ptr<AgentWorld>> packed(const AgentChoice& choice, uint64_t seed) {
    return create(choice, seed, kSpanUnit);
  }
  ~ReadWorld() override {
    end();
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  Message work() override {
    std::vector<uint32_t> extents;
    uint32_t extent = random_.below(kSound);
    for (uint32_t n = random_.below(kMostUnits + 1); n > 0; --n) {
      extents.push_back(extent);
      extent = random_.below(3) != 0 ? (extent + 1) % kSound : random_.below(kSound);
    }
    Message message = read(extents);
    message.priority = static_cast<Priority>(random_.below(kPriorities));
    return message;
  }

  std::vector<Bad> bad() override {
    std::vector<Bad> all;
    all.push_back({"a wrong checksum", read({0, 1, kSpoilt, 2}), DoneStatus::corrupt, 2});
    all.push_back({"an extent behind the end of the file", read({3, kBehind}), DoneStatus::io_error, 1});
    all.push_back({"an extent that does not exist", read({kBehind + 7}), DoneStatus::invalid_argument, 0});
    if (unit_ != kBlock) return all;
    Message unaligned = read({0, 1});
    const uint32_t place = places_.place_of(unaligned);
    Unit unit;
    std::memcpy(&unit, places_.at(place) + sizeof(UnitList) + sizeof unit, sizeof unit);
    unit.offset += 1;
    std::memcpy(places_.at(place) + sizeof(UnitList) + sizeof unit, &unit, sizeof unit);
    places_.seal(place);
    all.push_back({"a destination that is not aligned", unaligned, DoneStatus::invalid_argument, 1});
    return all;
  }

  // n_done units lie where they should, and nothing beside the destinations was written.
  std::string completed(const Message& message, const Done& done) override {
    const uint32_t place = places_.place_of(message);
    std::string wrong;
    if (message.op == Op::read && done.status <= DoneStatus::cancelled) {
      wrong = look(place, PoolTable::units(pools_.resolve(message.list)), done);
    }
    places_.release(place);
    return wrong;
  }

 private:
  static constexpr uint64_t kBlock = kDirectIoAlignment;
  static constexpr uint32_t kSound = 64;  // extents that can be read
  static constexpr uint32_t kSpoilt = kSound;
  static constexpr uint32_t kBehind = kSound + 1;
  static constexpr uint32_t kMostUnits = 8;
  static constexpr uint32_t kMostBlocks = 4;  // of an extent
  static constexpr uint64_t kPlaceBytes = kBlock * (1 + kMostUnits * (kMostBlocks + 2));
  static constexpr uint32_t kLandingPlaces = 40;
  static constexpr uint64_t kBounceBytes = 10 * kBlock;  // less than a message

  ReadWorld(uint64_t seed, uint64_t unit) : PlacedWorld(seed, kBlock, kPlaceBytes), unit_(unit) {}

  // Everything in the file and in memory is a multiple of `unit`.
  static Result<std::unique_ptr<AgentWorld>> create(const AgentChoice& choice, uint64_t seed, uint64_t unit) {
    std::unique_ptr<ReadWorld> world(new ReadWorld(seed, unit));
    TIERD_TRY(world->write_file());
    AgentContext context{.number = kAgent, .table = "tiers.flash", .pools = world->pools_};
    // Some of the destinations: reads go elsewhere too.
    context.read = {.path = world->path_,
                    .extents = world->table_,
                    .landing = world->places_.memory().first(kLandingPlaces * kPlaceBytes),
                    .bounce_bytes = unit == kBlock ? 0 : kBounceBytes};
    TIERD_TRY(world->make(choice, context));
    return std::unique_ptr<AgentWorld>(std::move(world));
  }

  Status write_file() {
    const auto most_units = static_cast<uint32_t>(kMostBlocks * kBlock / unit_);
    for (uint32_t i = 0; i <= kSpoilt; ++i) {
      if (random_.below(4) == 0) content_.resize(content_.size() + unit_);  // a gap
      const uint64_t bytes = unit_ * (1 + random_.below(most_units));
      table_.push_back({content_.size(), bytes, 0});
      content_.resize(content_.size() + bytes);
    }
    content_.resize(align_up(content_.size(), kBlock));
    for (uint64_t at = 0; at < content_.size(); at += sizeof(uint64_t)) {
      const uint64_t word = random_.next();
      std::memcpy(content_.data() + at, &word, sizeof word);
    }
    for (ExtentRef& extent : table_)
      extent.checksum = checksum({content_.data() + extent.offset, extent.bytes});
    table_[kSpoilt].checksum ^= 1;
    table_.push_back({content_.size() + kBlock, kBlock, 0});

    std::string path = (std::filesystem::temp_directory_path() / "tier-conform-XXXXXX").string();
    const int file = ::mkstemp(path.data());
    if (file < 0) return Error{Code::io_error, path, "no temporary file can be made"};
    ::close(file);
    path_ = path;
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(content_.data()), static_cast<std::streamsize>(content_.size()));
    if (!out.flush()) return Error{Code::io_error, path, "cannot be written"};
    return {};
  }

  Message read(const std::vector<uint32_t>& extents) {
    const uint32_t place = places_.take();
    std::vector<Unit> units;
    uint64_t at = kBlock;
    for (const uint32_t extent : extents) {
      if (random_.below(3) == 0) at += unit_ * random_.below(3);
      units.push_back({extent, static_cast<uint32_t>((place * kPlaceBytes + at) / kSpanUnit)});
      at += extent < table_.size() ? table_[extent].bytes : kBlock;
    }
    write_list(place, kKernel, units);
    return message(Op::read, place, sizeof(UnitList) + units.size() * sizeof(Unit));
  }

  std::string look(uint32_t place, std::span<const Unit> units, const Done& done) const {
    const std::byte* base = places_.at(place);
    if (done.n_done > units.size()) return fmt::format("n_done is {} of {} units", done.n_done, units.size());
    if (done.status == DoneStatus::ok && done.n_done != units.size()) {
      return fmt::format("ok with {} of {} units", done.n_done, units.size());
    }
    uint64_t checked = kBlock;
    uint64_t bytes = 0;
    uint32_t landed = 0;
    for (uint32_t i = 0; i < units.size(); ++i) {
      const ExtentRef& extent = table_[units[i].unit];
      const uint64_t begin = units[i].offset * kSpanUnit - place * kPlaceBytes;
      if (!Places::untouched({base + checked, begin - checked}))
        return "a byte beside the destinations was written";
      checked = begin + extent.bytes;
      if (std::memcmp(base + begin, content_.data() + extent.offset, extent.bytes) == 0) {
        bytes += extent.bytes;
        ++landed;
      } else if (done.status == DoneStatus::ok) {
        return fmt::format("unit {} of {} has not the bytes of its extent", i, units.size());
      }
    }
    if (!Places::untouched({base + checked, kPlaceBytes - checked}))
      return "a byte beside the destinations was written";
    // A cancelled read may have brought any of its units, and some that it does not count.
    if (landed < done.n_done) return fmt::format("{} units are said, {} have come", done.n_done, landed);
    const bool right = done.status == DoneStatus::ok ? bytes == done.bytes : bytes >= done.bytes;
    return right ? "" : fmt::format("{} B are said, {} B have come", done.bytes, bytes);
  }

  const uint64_t unit_;
  std::string path_;
  std::vector<std::byte> content_;
  std::vector<ExtentRef> table_;
};

// ---- an agent that computes

// One site of three neurons, the last of them shorter; the agent's products are held against naive ones.
class ComputeWorld final : public PlacedWorld {
 public:
  static Result<std::unique_ptr<AgentWorld>> create(const AgentChoice& choice, uint64_t seed) {
    std::unique_ptr<ComputeWorld> world(new ComputeWorld(seed));
    AgentContext context{.number = kAgent, .table = "tiers.dram", .pools = world->pools_};
    ComputeTask task;
    task.plan.buffers = {{"in", kIn, 0}, {"out", kOut, 0}};
    task.plan.max_rows = kRows;
    task.plan.context = 1;
    SiteWork site;
    site.name = "site";
    site.cut = Rows{.n_in = kIn, .stacked = {kOut}, .rows = kGroupRows};
    site.editions = {0};
    task.plan.editions = {{Encoding::f32}};
    site.in = 0;
    site.out = 1;
    task.plan.sites = {site};
    task.arena_bytes = kArena;
    task.staging_bytes = kArena;
    task.threads = static_cast<uint32_t>(1 + seed % 2);
    const ComputePlan plan = task.plan;
    context.compute = std::move(task);
    TIERD_TRY(world->make(choice, context));
    world->fill(plan);
    constexpr uint32_t kBoth = serves(Op::move) | serves(Op::resize);
    world->rearranges_ = (choice.entry->serves & kBoth) == kBoth;
    return std::unique_ptr<AgentWorld>(std::move(world));
  }

  Message work() override {
    std::vector<uint32_t> neurons;
    for (uint32_t neuron = 0; neuron < kNeurons; ++neuron) {
      if (random_.below(3) != 0) neurons.push_back(neuron);
    }
    if (neurons.size() > 1 && random_.below(2) == 0) std::swap(neurons.front(), neurons.back());
    return compute(neurons);
  }
  // Every message of this world has rows.
  Message control(Op op, const MessageId& target) override {
    Message message = PlacedWorld::control(op, target);
    message.engine = EngineKind::compute;
    return message;
  }
  std::optional<Message> rearrange() override {
    if (!rearranges_) return std::nullopt;
    return random_.below(2) == 0 ? move() : resize();
  }
  std::vector<Bad> bad() override {
    Message read = compute({0});
    read.op = Op::read;
    std::vector<Bad> all = {{"an operation that it does not serve", read, DoneStatus::invalid_argument, 0}};
    if (!rearranges_) return all;
    constexpr uint32_t kEnd = kArena / kSpanUnit;
    const auto add = [&](const char* what, Op op, const std::vector<Unit>& units, uint32_t first_bad) {
      all.push_back({what, about_the_arena(op, units), DoneStatus::invalid_argument, first_bad});
    };
    const uint32_t at = static_cast<uint32_t>(at_[0] / kSpanUnit);
    add("a slot moved out of the arena", Op::move, {{at, at}, {at, kEnd - 1}}, 1);
    add("addresses behind the arena", Op::resize, {{0, kEnd}, {kEnd, kEnd + 1}}, 1);
    add("addresses that do not ascend", Op::resize, {{1, kEnd}, {0, 1}}, 1);
    return all;
  }

  std::string completed(const Message& message, const Done& done) override {
    const uint32_t place = places_.place_of(message);
    std::string wrong;
    if (message.op == Op::compute && done.status == DoneStatus::ok) {
      wrong = look(message, PoolTable::units(pools_.resolve(message.list)), done);
    }
    places_.release(place);
    return wrong;
  }

 private:
  static constexpr uint32_t kIn = 32;
  static constexpr uint32_t kOut = 40;
  static constexpr uint32_t kRows = 3;
  static constexpr uint32_t kNeurons = (kOut + kGroupRows - 1) / kGroupRows;
  static constexpr uint64_t kGroup = uint64_t{kGroupRows} * kIn * sizeof(float);  // of a neuron
  static constexpr uint64_t kArena = 12 * kDirectIoAlignment;
  static constexpr uint64_t kListBytes = 128;
  static constexpr uint64_t kPlaceBytes = kDirectIoAlignment;
  static constexpr double kTolerance = 1e-4;

  explicit ComputeWorld(uint64_t seed) : PlacedWorld(seed, kListBytes, kPlaceBytes) {}

  // Some of the neurons of the arena to slots that are free, one after the other.
  Message move() {
    std::vector<Unit> units;
    for (uint32_t neuron = 0; neuron < kNeurons; neuron += 2) {
      if (random_.below(3) == 0) continue;
      const uint64_t to = random_.below(kArena / kGroup) * kGroup;
      bool taken = false;
      for (uint32_t other = 0; other < kNeurons; other += 2) taken = taken || at_[other] == to;
      if (taken) continue;
      units.push_back(
          {static_cast<uint32_t>(at_[neuron] / kSpanUnit), static_cast<uint32_t>(to / kSpanUnit)});
      at_[neuron] = to;
    }
    return about_the_arena(Op::move, units);
  }
  // The slots that are taken, each a range, sometimes with what follows.
  Message resize() {
    std::vector<Unit> ranges;
    for (uint64_t slot = 0; slot < kArena / kGroup; ++slot) {
      const bool taken = at_[0] == slot * kGroup || at_[2] == slot * kGroup;
      if (!taken && random_.below(3) != 0) continue;
      ranges.push_back({static_cast<uint32_t>(slot * kGroup / kSpanUnit),
                        static_cast<uint32_t>((slot + 1) * kGroup / kSpanUnit)});
    }
    return about_the_arena(Op::resize, ranges);
  }
  Message about_the_arena(Op op, const std::vector<Unit>& units) {
    const uint32_t place = places_.take();
    write_list(place, kAgent, units);
    Message message = this->message(op, place, sizeof(UnitList) + units.size() * sizeof(Unit));
    message.engine = EngineKind::copy;
    if (op == Op::move) message.aux.bytes = static_cast<uint32_t>(kGroup);
    return message;
  }

  // Weights in the arena and in staging, inputs in the agent's buffers; outputs are no numbers yet.
  void fill(const ComputePlan& plan) {
    const std::span<std::byte> memory = pools_.memory(kAgent, 0);
    const std::span<std::byte> buffers = pools_.memory(kAgent, 1);
    const std::vector<uint64_t> offsets = buffer_offsets(plan);
    for (float& weight : weights_) weight = random_.symmetric();
    TIERD_CHECK(group_bytes(Encoding::f32, kIn) == kGroup);
    for (uint32_t neuron = 0; neuron < kNeurons; ++neuron) {
      // Neurons lie in the arena and in staging by turns, wherever.
      at_[neuron] = (neuron % 2 == 0 ? 0 : kArena) + (kNeurons - 1 - neuron) * kGroup;
      const uint32_t rows = std::min(kGroupRows, kOut - neuron * kGroupRows);
      const std::span<const float> plain(weights_.data() + neuron * kGroupRows * kIn, rows * kIn);
      pack_row_group(Encoding::f32, rows, kIn, std::as_bytes(plain), memory.subspan(at_[neuron], kGroup));
    }
    const auto buffer = [&](uint32_t b) { return reinterpret_cast<float*>(buffers.data() + offsets[b]); };
    out_ = buffer(1);
    out_stride_ = buffer_stride(plan.buffers[1]);
    for (uint32_t row = 0; row < kRows; ++row) {
      float* x = buffer(0) + row * buffer_stride(plan.buffers[0]);
      for (uint32_t c = 0; c < kIn; ++c) x[c] = random_.symmetric();
      std::fill_n(out_ + row * out_stride_, kOut, std::nanf(""));
      for (uint32_t r = 0; r < kOut; ++r) {
        double sum = 0;
        for (uint32_t c = 0; c < kIn; ++c) sum += double{weights_[r * kIn + c]} * x[c];
        expected_.push_back(sum);
      }
    }
  }

  Message compute(const std::vector<uint32_t>& neurons) {
    const uint32_t place = places_.take();
    std::vector<Unit> units;
    for (const uint32_t neuron : neurons) {
      units.push_back({neuron, static_cast<uint32_t>(at_[neuron] / kSpanUnit)});
    }
    const auto rows = static_cast<uint16_t>(1 + random_.below(kRows));
    const std::vector<RowInfo> infos(rows);
    std::memcpy(places_.at(place) + kSpanUnit, infos.data(), infos.size() * sizeof(RowInfo));
    write_list(place, kAgent, units);
    Message message = this->message(Op::compute, place, sizeof(UnitList) + units.size() * sizeof(Unit));
    message.engine = EngineKind::compute;
    message.flags = kRunBefore | kRunAfter;
    message.rows = rows;
    message.in = places_.span(place, kSpanUnit, rows * sizeof(RowInfo));
    return message;
  }

  std::string look(const Message& message, std::span<const Unit> units, const Done& done) const {
    if (done.n_done != units.size()) return fmt::format("ok with {} of {} units", done.n_done, units.size());
    for (uint32_t row = 0; row < message.rows; ++row) {
      for (const Unit& unit : units) {
        for (uint32_t r = unit.unit * kGroupRows; r < std::min((unit.unit + 1) * kGroupRows, kOut); ++r) {
          const double got = out_[row * out_stride_ + r];
          if (!(std::abs(got - expected_[row * kOut + r]) < kTolerance)) {
            return fmt::format("output {} of row {} is {}, {} was expected", r, row, got,
                               expected_[row * kOut + r]);
          }
        }
      }
    }
    return "";
  }

  std::vector<float> weights_ = std::vector<float>(kOut * kIn);
  bool rearranges_ = false;
  uint64_t at_[kNeurons] = {};  // bytes in pool 0
  float* out_ = nullptr;
  uint64_t out_stride_ = 0;
  std::vector<double> expected_;  // [rows x kOut]
};

// ---- an agent that promises nothing

class PlainWorld final : public PlacedWorld {
 public:
  static Result<std::unique_ptr<AgentWorld>> create(const AgentChoice& choice, uint64_t seed) {
    std::unique_ptr<PlainWorld> world(new PlainWorld(seed));
    AgentContext context{.number = kAgent, .table = "tiers.TIER", .pools = world->pools_};
    TIERD_TRY(world->make(choice, context));
    return std::unique_ptr<AgentWorld>(std::move(world));
  }
  bool promises() const override { return false; }
  Message work() override {
    constexpr Op kOps[] = {Op::read, Op::copy, Op::compute, Op::run, Op::edit, Op::move, Op::resize};
    Message message = control(kOps[random_.below(static_cast<uint32_t>(std::size(kOps)))], {});
    message.engine = static_cast<EngineKind>(random_.below(kEngines));
    return message;
  }
  std::string completed(const Message& message, const Done&) override {
    places_.release(places_.place_of(message));
    return "";
  }

 private:
  static constexpr uint64_t kPlaceBytes = 256;
  explicit PlainWorld(uint64_t seed) : PlacedWorld(seed, kPlaceBytes, kPlaceBytes) {}
};

}  // namespace

std::vector<AgentCase> agent_cases(const AgentChoice& choice) {
  std::vector<AgentCase> cases;
  const auto add = [&](const char* what, auto create) {
    cases.push_back({fmt::format("{}_{}", choice.entry->name, what),
                     [choice, create](uint64_t seed) { return create(choice, seed); }});
  };
  const uint32_t serves = choice.entry->serves;
  if ((serves & tierd::serves(Op::read)) != 0) {
    add("reads", ReadWorld::blocks);
    add("reads_packed", ReadWorld::packed);
  }
  if ((serves & tierd::serves(Op::compute)) != 0) add("computes", ComputeWorld::create);
  if (cases.empty()) add("promises_nothing", PlainWorld::create);
  return cases;
}

}  // namespace tierd
