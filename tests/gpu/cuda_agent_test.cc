// The GPU agent with the backend `cuda` over a double of the CUDA runtime: the rules of agents, and a device
// that has no room, refuses work or is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "core/agent/clock.h"
#include "tests/dram/pruned_neurons.h"
#include "tests/gpu/cuda_on_host/double.h"
#include "tests/gpu/one_neuron.h"
#include "tests/tier/conform/agent_cases.h"
#include "tiers/gpu/cuda/cuda_device.h"
#include "tiers/gpu/team_work.h"

namespace tierd::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<AgentRuleCase> cases_of_double(int64_t late) {
  const std::string file = TIERD_DOUBLE_DIR "/agent-double.so";
  const auto entry = load_agent(file, "double");
  EXPECT_TRUE(entry.ok()) << entry.error().line();
  const std::vector<Setting> settings = {{"late", late, "test"}};
  auto choice = choose_settings(**entry, file, "test", settings);
  EXPECT_TRUE(choice.ok()) << choice.error().line();
  return rule_cases(agent_cases(*choice));
}
INSTANTIATE_TEST_SUITE_P(AtOnce, AgentConformance, testing::ValuesIn(cases_of_double(0)), case_name);
INSTANTIATE_TEST_SUITE_P(Late, AgentConformance, testing::ValuesIn(cases_of_double(5)), case_name);

std::unique_ptr<HostWork> host_work() {
  return std::make_unique<TeamWork>(best_kernels(), std::make_unique<Team>(Team::Options{.workers = 2}));
}

// One neuron whose weights are all one, in the host's memory 1. The device is memory 2.
class CudaDeviceTest : public testing::Test {
 protected:
  static constexpr MemoryId kHost = 1, kDevice = 2;
  static constexpr uint64_t kNeuron = kNeuronOfOne;
  static constexpr uint64_t kArena = 64 << 20;

  CudaDeviceTest() {
    plan_ = plan_of_one_neuron();
    for (Line& line : host_) std::fill_n(line.values, 16, 1.0F);
    options_.number = 4;
    options_.table = "tiers.gpu";
    options_.memory = kDevice;
    options_.arena_bytes = kArena;
    options_.staging_bytes = 4096;
  }
  Result<std::unique_ptr<CudaDevice>> create() {
    pools_ = {};
    pools_.add_memory(kHost, std::as_writable_bytes(std::span(host_)));
    return CudaDevice::create(options_, pools_, clock_, plan_, host_work());
  }
  void make(const on_host::Behaviour& behaviour = {}) {
    device_.reset();
    on_host::behave(behaviour);
    auto device = create();
    ASSERT_TRUE(device.ok()) << device.error().line();
    device_ = std::move(*device);
  }
  std::string refusal(const on_host::Behaviour& behaviour) {
    device_.reset();
    on_host::behave(behaviour);
    const auto device = create();
    return device.ok() ? "made" : device.error().line();
  }
  DeviceRequest request(Op op, std::vector<Unit> units) {
    DeviceRequest request;
    units_ = std::move(units);
    request.message.op = op;
    request.message.from = kHost;
    request.message.memory = kDevice;
    request.message.unit_bytes = kNeuron;
    request.message.rows = 2;
    request.payload = {.units = units_, .rows = rows_};
    return request;
  }
  Done carry_out(Device::Engine engine, const DeviceRequest& request) {
    device_->begin(engine, request);
    for (;;) {
      if (const auto done = device_->over(engine)) return *done;
    }
  }
  Done copy(std::vector<Unit> units) {
    return carry_out(Device::Engine::copy, request(Op::move, std::move(units)));
  }
  // Runs the neuron on ones, taken or left by the run before, and gives columns 2 to 4 of the result.
  Done run(uint32_t place) {
    take_ = {.what = Take::What::input, .stride = 8, .columns = 8, .values = ones_.data()};
    give_ = {static_cast<uint32_t>(buffer_offsets(plan_)[1] / kPlaceUnit), buffer_stride(plan_.buffers[1]), 2,
             3};
    DeviceRequest run = request(Op::run, {{0, place}});
    if (takes_) run.payload.takes = {&take_, 1};
    run.payload.gives = {&give_, 1};
    std::memset(pools_.activations(4).data() + buffer_offsets(plan_)[1], 0, 6 * sizeof(float));
    return carry_out(Device::Engine::compute, run);
  }
  std::vector<float> given() const {
    const auto* out = reinterpret_cast<const float*>(pools_.activations(4).data() + buffer_offsets(plan_)[1]);
    return {out + 1, out + 6};
  }

  ComputePlan plan_;
  DeviceOptions options_;
  ManualClock clock_;
  PoolTable pools_;
  struct alignas(64) Line {
    float values[16] = {};
  };
  std::array<Line, 8> host_ = {};
  const std::vector<float> ones_ = std::vector<float>(16, 1.0F);
  std::vector<RowInfo> rows_ = std::vector<RowInfo>(2);
  std::vector<Unit> units_;
  bool takes_ = true;
  Take take_;
  Give give_;
  std::unique_ptr<CudaDevice> device_;
};

TEST_F(CudaDeviceTest, ComputesFromWhatWasBrought) {
  for (const uint64_t late : {0, 3, 4}) {
    make({.late = late});
    EXPECT_EQ(device_->backend(), "cuda, a double (sm_90)");
    EXPECT_TRUE(pools_.memory(kDevice).empty());
    const Done brought = copy({{0, 64}});
    EXPECT_EQ(brought.status, DoneStatus::ok);
    EXPECT_EQ(brought.bytes, kNeuron);
    EXPECT_EQ(brought.n_done, 1u);
    const Done ran = run(64);
    EXPECT_EQ(ran.status, DoneStatus::ok);
    EXPECT_EQ(ran.bytes, kNeuron);
    EXPECT_THAT(given(), ElementsAre(0, 8, 8, 8, 0)) << "the columns that were asked for, and no others";
  }
}

// A transfer larger than its blocks, with slots larger than one block, on a randomly slow device.
TEST_F(CudaDeviceTest, TransfersGoOnFromBlockToBlock) {
  for (const uint64_t late : {0, 1, 2}) {
    make({.late = late});
    std::vector<std::byte> source(11 << 20);
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 31 >> 7);
    std::vector<Line> aligned(source.size() / 64);
    std::memcpy(aligned.data(), source.data(), source.size());
    pools_.add_memory(5, std::as_writable_bytes(std::span(aligned)));
    DeviceRequest move = request(Op::move, {{0, 1 << 16}, {5 << 14, 0}});
    move.message.from = 5;
    move.message.unit_bytes = 5 << 20;
    EXPECT_EQ(carry_out(Device::Engine::copy, move).status, DoneStatus::ok);
    // Moves inside the device with the other engine: {1 << 16} to {3 << 17}, then the earlier contents.
    DeviceRequest inside = request(Op::move, {{1 << 16, 1 << 18}, {0, 1 << 16}});
    inside.message.from = kDevice;
    inside.message.unit_bytes = 5 << 20;
    EXPECT_EQ(carry_out(Device::Engine::compute, inside).status, DoneStatus::ok);
  }
}

// At first the agent polls the device. After it parks, it is woken separately for each engine.
TEST_F(CudaDeviceTest, WhoeverParksIsWoken) {
  constexpr auto kCopy = Device::Engine::copy, kCompute = Device::Engine::compute;
  int parked = 0;
  for (uint64_t late = 1; late <= 20; ++late) {
    make({.late = late});
    const auto readable = [&] {
      pollfd ready{device_->wait_fd(), POLLIN, 0};
      return ::poll(&ready, 1, 0) == 1;
    };
    std::vector<Unit> units = {{0, 0}};
    DeviceRequest move = request(Op::move, {{0, 64}});
    move.payload.units = units;
    device_->begin(kCopy, move);
    DeviceRequest before = request(Op::run, {});
    device_->begin(kCompute, before);
    if (device_->over(kCopy)) continue;
    EXPECT_TRUE(device_->soon(kCopy));
    EXPECT_FALSE(readable());
    clock_.now += 1'000'000;
    if (device_->over(kCopy)) continue;
    EXPECT_FALSE(device_->soon(kCopy));
    EXPECT_TRUE(readable());
    ++parked;
    // The double has drained both streams. Polling one engine takes no completion of the other.
    EXPECT_TRUE(device_->over(kCompute));
    EXPECT_TRUE(readable());
    EXPECT_TRUE(device_->over(kCopy));
    EXPECT_FALSE(readable());
  }
  EXPECT_GT(parked, 0);
}

// The addresses of an arena take no device memory until their range is in use.
TEST_F(CudaDeviceTest, OnlyWhatIsInUseTakesMemory) {
  make();
  const uint64_t before = on_host::bytes_in_use();
  EXPECT_EQ(carry_out(Device::Engine::compute, request(Op::resize, {{0, (3 << 20) / 64}})).status,
            DoneStatus::ok);
  EXPECT_EQ(on_host::bytes_in_use(), before + (4 << 20));
  EXPECT_EQ(copy({{0, 0}}).status, DoneStatus::ok);
  EXPECT_EQ(
      carry_out(Device::Engine::compute, request(Op::resize, {{(6 << 20) / 64, (8 << 20) / 64}})).status,
      DoneStatus::ok);
  EXPECT_EQ(on_host::bytes_in_use(), before + (2 << 20));
}

TEST_F(CudaDeviceTest, WhereThereIsNoRoomTheCapacityIsNamed) {
  plan_.context = 1000;
  plan_.attention = {.n_layers = 8, .n_heads = 16, .n_kv_heads = 16, .head_dim = 64, .frequencies = {}};
  EXPECT_THAT(
      refusal({.memory_bytes = 20 << 20}),
      testing::AllOf(testing::StartsWith("tiers.gpu.capacity: KV cache, activations, staging and small "
                                         "tensors take "),
                     HasSubstr(" of the device, which has ")));
  plan_.attention = {};
  make({.memory_bytes = 40 << 20});
  testing::internal::CaptureStderr();
  const Done done = carry_out(Device::Engine::compute, request(Op::resize, {{0, kArena / 64}}));
  EXPECT_EQ(done.status, DoneStatus::no_space);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("tiers.gpu.capacity: weights take 67.1 MB"));
  EXPECT_EQ(carry_out(Device::Engine::compute, request(Op::resize, {{0, 64}})).status, DoneStatus::ok);
}

TEST_F(CudaDeviceTest, WithoutADeviceALineSaysWhatIsMissing) {
  EXPECT_THAT(
      refusal({.driver = cudaErrorInsufficientDriver}),
      testing::StartsWith("tiers.gpu.backend: no CUDA device is usable (cudaErrorInsufficientDriver: "));
  EXPECT_THAT(refusal({.major = 7}), HasSubstr("a double has compute capability 7.0, expected at least 8.0"));
  options_.ordinal = 1;
  EXPECT_THAT(refusal({}), testing::StartsWith("tiers.gpu.device: is too large: there are 1 devices"));
}

// A failed launch fails its message, and the next message succeeds.
TEST_F(CudaDeviceTest, ALaunchThatFailsFailsItsMessage) {
  make({.launch_fails = 2});
  EXPECT_EQ(copy({{0, 0}}).status, DoneStatus::ok);
  testing::internal::CaptureStderr();
  const Done failed = run(0);
  EXPECT_EQ(failed.status, DoneStatus::internal);
  EXPECT_EQ(failed.error, cudaErrorLaunchOutOfResources);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("tiers.gpu: cuda, a double (sm_90) failed: cudaErrorLaunchOutOfResources"));
  EXPECT_EQ(run(0).status, DoneStatus::ok);
  EXPECT_THAT(given(), ElementsAre(0, 8, 8, 8, 0));
}

// A run that repeats unchanged is launched as a graph; a changed one is not.
TEST_F(CudaDeviceTest, RunsThatComeAgainAreCaptured) {
  constexpr uint32_t kElsewhere = kNeuron / kPlaceUnit;
  for (const uint64_t late : {0, 3}) {
    make({.late = late});
    EXPECT_EQ(copy({{0, 0}, {0, kElsewhere}}).status, DoneStatus::ok);
    const auto ran = [&](uint32_t place, uint32_t graphs) {
      EXPECT_EQ(run(place).status, DoneStatus::ok);
      EXPECT_THAT(given(), ElementsAre(0, 8, 8, 8, 0));
      EXPECT_EQ(on_host::graph_launches(), graphs) << "late " << late;
    };
    takes_ = true;
    for (uint32_t i = 0; i < 2 * CapturedRuns::kTimes; ++i) ran(0, 0);
    takes_ = false;
    for (uint32_t i = 1; i < CapturedRuns::kTimes; ++i) ran(0, 0);
    for (uint32_t i = 1; i < 5; ++i) ran(0, i);
    const uint32_t launched = on_host::launches();
    ran(0, 5);
    EXPECT_EQ(on_host::launches(), launched);
    ran(kElsewhere, 5);
    ran(0, 5);  // nothing captured before is kept
    for (uint32_t i = 2; i < CapturedRuns::kTimes; ++i) ran(0, 5);
    ran(0, 6);
    EXPECT_EQ(device_->counts().run.captured, 6U);
  }
}

// A run may fail while it is captured, and a device may refuse capture.
TEST_F(CudaDeviceTest, WhatCannotBeCapturedRunsAllTheSame) {
  for (const bool captures : {true, false}) {
    make({.captures = captures});
    EXPECT_EQ(copy({{0, 0}}).status, DoneStatus::ok);
    takes_ = true;
    EXPECT_EQ(run(0).status, DoneStatus::ok);
    takes_ = false;
    for (uint32_t i = 1; i < 2 * CapturedRuns::kTimes; ++i) {
      const bool fails = i == CapturedRuns::kTimes;
      if (fails) on_host::fail_launch(1);
      EXPECT_EQ(run(0).status, fails ? DoneStatus::internal : DoneStatus::ok);
      if (!fails) {
        EXPECT_THAT(given(), ElementsAre(0, 8, 8, 8, 0));
      }
    }
    EXPECT_EQ(on_host::graph_launches() != 0, captures);
  }
}

// An expanding move without memory for its lists fails alone; with memory it succeeds.
TEST_F(CudaDeviceTest, AnExpansionWithoutRoomFailsItsMessage) {
  PrunedNeurons compressed(Columns{130, 72}, true, Random(4));
  plan_ = plan_of_pruned(compressed, false, 2);
  plan_.editions.push_back(compressed.encodings);
  plan_.made = {std::nullopt, MadeNeurons{.of = 0, .site = 0}};
  const std::vector<Unit> units = {{compressed.units[0].place, 0}, {compressed.units[1].place, 4}};
  DeviceRequest expand = request(Op::move, {});
  expand.message.flags = kRecode;
  expand.message.edition = 1;
  expand.message.unit_bytes = static_cast<uint32_t>(align_up(compressed.compression->bytes[0], kPlaceUnit));
  const std::vector<uint32_t> neurons = {0, 1};
  expand.payload.units = units;
  expand.payload.neurons = neurons;
  uint64_t full = 0;
  for (const bool room : {true, false}) {
    device_.reset();
    on_host::behave(room ? on_host::Behaviour{} : on_host::Behaviour{.memory_bytes = full});
    pools_ = {};
    pools_.add_memory(kHost, std::as_writable_bytes(std::span(compressed.memory)));
    auto device = CudaDevice::create(options_, pools_, clock_, plan_, host_work());
    ASSERT_TRUE(device.ok()) << device.error().line();
    device_ = std::move(*device);
    EXPECT_EQ(copy({{0, 0}}).status, DoneStatus::ok);  // maps memory for both slots
    full = on_host::bytes_in_use();
    const Done done = carry_out(Device::Engine::copy, expand);
    EXPECT_EQ(done.status, room ? DoneStatus::ok : DoneStatus::no_space);
  }
}

// Neurons are encoded before they cross the link. Invalid moves are refused before anything is sent.
TEST_F(CudaDeviceTest, AMoveEncodesNeuronsAnew) {
  PrunedNeurons stored(Bundles{96, 20, true}, false, Random(4));
  plan_ = plan_of_pruned(stored, false, 2);
  plan_.editions.push_back(Encodings(3, Encoding::q4_0));
  plan_.made = {std::nullopt, MadeNeurons{.of = 0, .site = 0}};
  const NeuronRecoding recoding(stored.cut, plan_.editions[0], plan_.editions[1]);
  on_host::behave({});
  pools_ = {};
  pools_.add_memory(kHost, std::as_writable_bytes(std::span(stored.memory)));
  auto device = CudaDevice::create(options_, pools_, clock_, plan_, host_work());
  ASSERT_TRUE(device.ok()) << device.error().line();
  device_ = std::move(*device);
  std::vector<Unit> units;
  std::vector<uint32_t> neurons;
  for (const Unit& unit : stored.units) {
    units.push_back({unit.place, static_cast<uint32_t>(units.size() * 16)});
    neurons.push_back(unit.unit);
  }
  const auto moved = [&](uint64_t unit_bytes, MemoryId from = kHost) {
    DeviceRequest move = request(Op::move, {});
    move.message.flags = kRecode;
    move.message.edition = 1;
    move.message.from = from;
    move.message.unit_bytes = static_cast<uint32_t>(unit_bytes);
    move.payload.units = units;
    move.payload.neurons = neurons;
    return carry_out(Device::Engine::copy, move);
  };
  const auto expect_refused = [](const Done& done, uint32_t first_bad) {
    EXPECT_EQ(done.status, DoneStatus::invalid_argument);
    EXPECT_EQ(done.first_bad, first_bad);
  };
  const Done done = moved(recoding.from_bytes());
  EXPECT_EQ(done.status, DoneStatus::ok);
  EXPECT_EQ(done.n_done, units.size());
  EXPECT_EQ(done.bytes, units.size() * recoding.to_bytes());
  expect_refused(moved(recoding.from_bytes() - 1), 0);
  expect_refused(moved(recoding.from_bytes(), kDevice), 0);
  units[5].place = static_cast<uint32_t>(kArena / kPlaceUnit + 63);
  expect_refused(moved(recoding.from_bytes()), 5);
  neurons.pop_back();
  expect_refused(moved(recoding.from_bytes()), 0);
}

// When the device is lost, all messages, in flight and later, complete as lost, and one line says so.
TEST_F(CudaDeviceTest, ADeviceThatIsLostSaysSoOnce) {
  for (uint32_t look = 1; look < 8; ++look) {
    make({.late = look, .lost_at_look = look});
    testing::internal::CaptureStderr();
    DoneStatus copied = copy({{0, 0}}).status, ran = run(0).status;
    for (int i = 0; i < 8 && ran == DoneStatus::ok; ++i) ran = run(0).status;
    EXPECT_TRUE(copied == DoneStatus::ok || copied == DoneStatus::lost);
    EXPECT_EQ(ran, DoneStatus::lost);
    EXPECT_EQ(copy({{0, 0}}).status, DoneStatus::lost);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("cuda, a double (sm_90) is lost: cudaErrorECCUncorrectable"));
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
    on_host::behave({});
  }
}

TEST_F(CudaDeviceTest, WhatLiesInTheHostsMemoryIsMultipliedThere) {
  make();
  std::vector<float> x(8, 1.0F), y(2);
  device_->linear({Encoding::f32, 2, 8, reinterpret_cast<const std::byte*>(host_.data())}, x.data(), 1,
                  y.data());
  EXPECT_THAT(y, ElementsAre(8, 8));
}

}  // namespace
}  // namespace tierd::cuda
