// The world of an agent that computes: a small model, whose products are also computed naively.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/align.h"
#include "core/base/check.h"
#include "core/model/layout/row_group.h"
#include "tools/tier/conform/agent_worlds.h"
#include "tools/tier/conform/placed_world.h"

namespace tierd {
namespace {

// One site of three neurons, the last of them shorter; the agent's products are compared with naive ones. A
// run takes its input and gives its result. A second site, with the same weights and the same input, is for
// joint runs.
class ComputeWorld final : public PlacedWorld {
 public:
  static Result<std::unique_ptr<AgentWorld>> create(const AgentChoice& choice, uint64_t seed) {
    std::unique_ptr<ComputeWorld> world(new ComputeWorld(seed));
    AgentContext context{
        .number = kAgent, .table = "tiers.dram", .pools = world->pools_, .clock = world->clock_};
    ComputeTask task;
    task.memory = kMemory;
    task.plan.buffers = {{"in", kIn, 0}, {"out", kOut, 0}, {"out again", kOut, 0}};
    task.plan.max_rows = kRows;
    task.plan.context = 1;
    SiteWork site;
    site.name = "site";
    site.cut = Rows{.n_in = kIn, .stacked = {kOut}, .rows = kGroupRows};
    site.editions = {0};
    task.plan.editions = {{Encoding::f32}};
    site.in = 0;
    site.out = 1;
    task.plan.sites = {site, site};
    task.plan.sites.back().out = 2;
    task.arena_bytes = kArena;
    task.staging_bytes = kArena;
    task.threads = static_cast<uint32_t>(1 + seed % 2);
    const ComputePlan plan = task.plan;
    context.compute = std::move(task);
    TIERD_TRY(world->make(choice, context));
    world->fill(plan, is_apart(*choice.entry));
    constexpr uint32_t kBoth = serves(Op::move) | serves(Op::resize);
    world->rearranges_ = (choice.entry->serves & kBoth) == kBoth;
    if (is_apart(*choice.entry)) world->copies_ = 1;
    world->joins_ = (choice.entry->serves & kJoinsRuns) != 0;
    return std::unique_ptr<AgentWorld>(std::move(world));
  }

  Request work() override {
    std::vector<uint32_t> neurons;
    for (uint32_t neuron = 0; neuron < kNeurons; ++neuron) {
      if (random_.below(3) != 0) neurons.push_back(neuron);
    }
    if (neurons.size() > 1 && random_.below(2) == 0) std::swap(neurons.front(), neurons.back());
    Request one = compute(neurons);
    return joins_ && has_input_ && random_.below(2) == 0 ? joined(std::move(one)) : one;
  }
  std::optional<Request> rearrange() override {
    if (!rearranges_) return std::nullopt;
    return random_.below(2) == 0 ? move() : resize();
  }
  // The slot first holds another neuron, which no run may compute.
  std::optional<Behind> behind(bool fails) override {
    if (!rearranges_) return std::nullopt;
    std::vector<Unit> wrong, right;
    const std::array<uint64_t, kNeurons> before = at_;
    for (uint32_t neuron = 0; neuron < kNeurons; neuron += 2) {
      const uint64_t to = free_slot();
      at_[neuron] = to;
      wrong.push_back({kGroup / kPlaceUnit, static_cast<uint32_t>(to / kPlaceUnit)});
      right.push_back({static_cast<uint32_t>(neuron * kGroup / kPlaceUnit), wrong.back().place});
    }
    Behind behind;
    for (const std::vector<Unit>& units : {wrong, right}) {
      Request& move = behind.moves.emplace_back(about_the_arena(Op::move, units));
      move.message.from = kElsewhere;
      move.message.lane = copies_;
    }
    if (fails) behind.moves.back().message.from = 7;
    behind.run = compute({0, 2});
    behind.run.message.about = behind.moves.back().message.id;
    if (fails) at_ = before;
    return behind;
  }
  std::vector<Bad> bad() override {
    Request read = compute({0});
    read.message.op = Op::read;
    std::vector<Bad> all = {{"an operation that it does not serve", read, DoneStatus::invalid_argument, 0}};
    if (!rearranges_) return all;
    constexpr uint32_t kEnd = kArena / kPlaceUnit;
    const auto add = [&](const char* what, Op op, const std::vector<Unit>& units, uint32_t first_bad) {
      all.push_back({what, about_the_arena(op, units), DoneStatus::invalid_argument, first_bad});
    };
    const uint32_t at = static_cast<uint32_t>(at_[0] / kPlaceUnit);
    add("a slot moved out of the memory", Op::move, {{at, at}, {at, 4 * kEnd}}, 1);
    add("a slot moved from nowhere", Op::move, {{at, at}, {4 * kEnd, at}}, 1);
    add("a slot moved from a memory that there is not", Op::move, {{at, at}}, 0);
    all.back().request.message.from = 7;
    add("addresses behind the arena", Op::resize, {{0, kEnd}, {kEnd, kEnd + 1}}, 1);
    add("addresses that do not ascend", Op::resize, {{1, kEnd}, {0, 1}}, 1);
    return all;
  }

  std::string completed(const Message& message, const Done& done) override {
    const uint32_t place = message.id.slot;
    std::string wrong;
    if (message.op == Op::run && done.status == DoneStatus::ok) {
      wrong = look(message, places_.units(place), done);
      has_input_ |= message.rows == kRows;
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
  static constexpr uint64_t kPlaceBytes = kPlaceUnit;  // no read lands there
  static constexpr MemoryId kElsewhere = 2;
  static constexpr double kTolerance = 1e-4;

  explicit ComputeWorld(uint64_t seed) : PlacedWorld(seed, kPlaceBytes) {}

  // Moves some of the arena's neurons to free slots in turn; sometimes from another memory, which has all.
  Request move() {
    std::vector<Unit> units;
    const bool elsewhere = random_.below(2) == 0;
    for (uint32_t neuron = 0; neuron < kNeurons; neuron += 2) {
      if (random_.below(3) == 0) continue;
      const uint64_t to = free_slot();
      const uint64_t from = elsewhere ? neuron * kGroup : at_[neuron];
      units.push_back({static_cast<uint32_t>(from / kPlaceUnit), static_cast<uint32_t>(to / kPlaceUnit)});
      at_[neuron] = to;
    }
    Request request = about_the_arena(Op::move, units);
    if (elsewhere) request.message.from = kElsewhere;
    return request;
  }
  uint64_t free_slot() {
    for (;;) {
      const uint64_t slot = random_.below(kArena / kGroup) * kGroup;
      if (at_[0] != slot && at_[2] != slot) return slot;
    }
  }
  // Declares the taken slots as ranges, sometimes with the slots behind them.
  Request resize() {
    std::vector<Unit> ranges;
    for (uint64_t slot = 0; slot < kArena / kGroup; ++slot) {
      const bool taken = at_[0] == slot * kGroup || at_[2] == slot * kGroup;
      if (!taken && random_.below(3) != 0) continue;
      ranges.push_back({static_cast<uint32_t>(slot * kGroup / kPlaceUnit),
                        static_cast<uint32_t>((slot + 1) * kGroup / kPlaceUnit)});
    }
    return about_the_arena(Op::resize, ranges);
  }
  Request about_the_arena(Op op, const std::vector<Unit>& units) {
    const uint32_t place = places_.take();
    places_.units(place) = units;
    Request request = this->request(op, place);
    if (op == Op::move) {
      request.message.from = kMemory;
      request.message.unit_bytes = static_cast<uint32_t>(kGroup);
    }
    return request;
  }

  // Writes the weights to the arena and to staging. The gives start as NaN.
  void fill(const ComputePlan& plan, bool apart) {
    const std::span<std::byte> memory = pools_.memory(kMemory);
    const std::span<std::byte> buffers = pools_.activations(kAgent);
    const std::vector<uint64_t> offsets = buffer_offsets(plan);
    for (float& weight : weights_) weight = random_.symmetric();
    TIERD_CHECK(group_bytes(Encoding::f32, kIn) == kGroup);
    for (uint32_t neuron = 0; neuron < kNeurons; ++neuron) {
      // Neurons alternate between the arena and staging.
      at_[neuron] = (neuron % 2 == 0 ? 0 : kArena) + (kNeurons - 1 - neuron) * kGroup;
      const uint32_t rows = std::min(kGroupRows, kOut - neuron * kGroupRows);
      const std::span<const float> plain(weights_.data() + neuron * kGroupRows * kIn, rows * kIn);
      pack_row_group(Encoding::f32, rows, kIn, std::as_bytes(plain), elsewhere_[neuron]);
      if (apart) {
        made().load(at_[neuron], elsewhere_[neuron]);
      } else {
        std::ranges::copy(elsewhere_[neuron], memory.subspan(at_[neuron], kGroup).begin());
      }
    }
    pools_.add_memory(kElsewhere, std::as_writable_bytes(std::span(elsewhere_)));
    out_ = reinterpret_cast<float*>(buffers.data() + offsets[1]);
    out_stride_ = buffer_stride(plan.buffers[1]);
    out_again_ = reinterpret_cast<float*>(buffers.data() + offsets[2]);
    given_ = {static_cast<uint32_t>(offsets[1] / kPlaceUnit), static_cast<uint32_t>(out_stride_), 0, kOut};
    given_again_ = given_;
    given_again_.place = static_cast<uint32_t>(offsets[2] / kPlaceUnit);
    taken_ = {.what = Take::What::input, .stride = kIn, .first = 0, .columns = kIn, .values = inputs_.data()};
    for (uint32_t row = 0; row < kRows; ++row) {
      float* x = inputs_.data() + row * kIn;
      for (uint32_t c = 0; c < kIn; ++c) x[c] = random_.symmetric();
      std::fill_n(out_ + row * out_stride_, kOut, std::nanf(""));
      std::fill_n(out_again_ + row * out_stride_, kOut, std::nanf(""));
      for (uint32_t r = 0; r < kOut; ++r) {
        double sum = 0;
        for (uint32_t c = 0; c < kIn; ++c) sum += double{weights_[r * kIn + c]} * x[c];
        expected_.push_back(sum);
      }
    }
  }

  Request compute(const std::vector<uint32_t>& neurons) {
    const uint32_t place = places_.take();
    for (const uint32_t neuron : neurons)
      places_.units(place).push_back({neuron, static_cast<uint32_t>(at_[neuron] / kPlaceUnit)});
    places_.rows(place).resize(1 + random_.below(kRows));
    Request request = this->request(Op::run, place);
    request.message.flags = kRunBefore | kRunAfter;
    request.payload.takes = {&taken_, 1};
    request.payload.gives = {&given_, 1};
    request.message.n_takes = request.message.n_gives = 1;
    return request;
  }

  // A joint run: all neurons of the one site, then those of the request for the other site. Their input is
  // left from earlier runs, since a joint run takes nothing.
  Request joined(Request request) {
    const uint32_t place = request.message.id.slot;
    std::vector<Unit>& units = places_.units(place);
    std::array<SiteRun, 2>& sites = joint_[place];
    sites[0] = {.site = 0, .n_units = kNeurons, .flags = kRunBefore | kRunAfter};
    sites[1] = {.site = 1, .n_units = static_cast<uint32_t>(units.size()), .flags = kRunBefore | kRunAfter};
    std::vector<Unit> all;
    for (uint32_t neuron = 0; neuron < kNeurons; ++neuron)
      all.push_back({neuron, static_cast<uint32_t>(at_[neuron] / kPlaceUnit)});
    units.insert(units.begin(), all.begin(), all.end());
    places_.seal(place);
    request.payload.units = units;
    request.payload.takes = {};
    request.payload.gives = {&given_again_, 1};
    request.payload.sites = sites;
    request.message.flags = 0;
    request.message.n_units = static_cast<uint32_t>(units.size());
    request.message.n_takes = 0;
    request.message.n_sites = 2;
    return request;
  }

  std::string look(const Message& message, std::span<const Unit> units, const Done& done) const {
    if (done.n_done != units.size()) return fmt::format("ok with {} of {} units", done.n_done, units.size());
    const bool joint = message.n_sites != 0;
    if (joint) units = units.subspan(kNeurons);
    const float* const out = joint ? out_again_ : out_;
    for (uint32_t row = 0; row < message.rows; ++row) {
      for (const Unit& unit : units) {
        for (uint32_t r = unit.unit * kGroupRows; r < std::min((unit.unit + 1) * kGroupRows, kOut); ++r) {
          const double got = out[row * out_stride_ + r];
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
  // Copies of the neurons in another memory.
  struct alignas(kPlaceUnit) Group : std::array<std::byte, kGroup> {};
  std::array<Group, kNeurons> elsewhere_ = {};
  bool rearranges_ = false;
  uint8_t copies_ = 0;                      // the lane of moves
  std::array<uint64_t, kNeurons> at_ = {};  // bytes in the memory
  std::array<float, uint64_t{kRows}* kIn> inputs_ = {};
  Take taken_;
  Give given_, given_again_;
  bool joins_ = false;
  bool has_input_ = false;  // all rows have an input, from an earlier run
  std::vector<std::array<SiteRun, 2>> joint_ = std::vector<std::array<SiteRun, 2>>(kMostPlaces);
  float* out_ = nullptr;
  float* out_again_ = nullptr;
  uint64_t out_stride_ = 0;
  std::vector<double> expected_;  // [rows x kOut]
};

}  // namespace

Result<std::unique_ptr<AgentWorld>> compute_world(const AgentChoice& choice, uint64_t seed) {
  return ComputeWorld::create(choice, seed);
}

}  // namespace tierd
