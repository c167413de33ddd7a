#include "tiers/gpu/gpu_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>

#include "core/base/time.h"
#include "core/kernel/post/clocks.h"
#include "tests/gpu/one_neuron.h"
#include "tests/tier/conform/agent_cases.h"
#include "tiers/gpu/host_device.h"

namespace tierd {
namespace {

using testing::ElementsAre;

INSTANTIATE_TEST_SUITE_P(Gpu, AgentConformance, testing::ValuesIn(rule_cases("gpu")), case_name);
INSTANTIATE_TEST_SUITE_P(GpuOverALink, AgentConformance,
                         testing::ValuesIn(rule_cases("gpu", {{"link_rate", std::string("100 MB"), "test"},
                                                              {"link_latency_us", int64_t{50}, "test"}})),
                         case_name);

// Without a GPU, `cuda` is missing either its object, if built without nvcc, or a driver.
TEST(GpuBackend, IsWhatTheParameterSays) {
  const auto make = [](const char* backend) {
    const AgentChoice choice = choose_agent("gpu", {{"backend", std::string(backend), "test"}});
    return agent_cases(choice).front().make(1);
  };
  EXPECT_TRUE(make("host").ok());
  EXPECT_TRUE(make("auto").ok());
  const auto cuda = make("cuda");
  if (cuda.ok()) GTEST_SKIP() << "a GPU answers";
  EXPECT_THAT(cuda.error().line(),
              testing::AnyOf(
                  testing::HasSubstr("tierd-gpu-cuda.so: there is no such file, because this tierd was built "
                                     "without nvcc"),
                  testing::HasSubstr(".backend: no CUDA device is usable (cudaError")));
}

// A device whose requests end when the test says so.
class ManualDevice final : public Device {
 public:
  explicit ManualDevice(std::vector<std::string>& log) : log_(log) {}
  std::string backend() const override { return "manual"; }
  void load(uint64_t, std::span<const std::byte>) override {}
  void begin(Engine engine, const DeviceRequest& request) override {
    const auto e = static_cast<size_t>(engine);
    EXPECT_FALSE(busy[e]) << "one at a time";
    busy[e] = true;
    log_.push_back((engine == Engine::copy ? "copy " : "compute ") + std::to_string(request.message.id.slot));
  }
  std::optional<Done> over(Engine engine) override {
    const auto e = static_cast<size_t>(engine);
    EXPECT_TRUE(busy[e]);
    if (!std::exchange(ends[e], false)) return std::nullopt;
    busy[e] = false;
    Done done;
    done.status = status;
    return done;
  }
  void linear(const PackedMatrix&, const float*, uint32_t, float*) override {}
  AgentCounts counts() const override { return {}; }

  bool busy[kEngines] = {};
  bool ends[kEngines] = {};
  DoneStatus status = DoneStatus::ok;  // the status of requests that end

 private:
  std::vector<std::string>& log_;
};

class GpuLanes : public testing::Test {
 protected:
  static constexpr uint8_t kCompute = 0, kCopy = 1;

  GpuLanes() {
    auto device = std::make_unique<ManualDevice>(log_);
    device_ = device.get();
    agent_ = std::make_unique<GpuAgent>(std::move(device), clock_, 8);
  }
  Message message(Op op, uint8_t lane, uint32_t slot, Priority priority = Priority::demand) {
    Message message;
    message.id = {slot, 1};
    message.op = op;
    message.lane = lane;
    message.priority = priority;
    return message;
  }
  void submit(const Message& message) { ASSERT_EQ(agent_->submit(message, {}), Submit::ok); }
  void end(uint8_t lane) {
    device_->ends[lane] = true;
    EXPECT_EQ(agent_->drive(), Drive::busy);
  }
  // Returns "3 on 1, 4 cancelled on 1".
  std::string polled() {
    std::string text;
    Done done;
    while (agent_->poll({&done, 1}) == 1) {
      text += (text.empty() ? "" : ", ") + std::to_string(done.id.slot);
      if (done.status != DoneStatus::ok) text += std::string(" ") + status_name(done.status);
      text += " on " + std::to_string(done.lane);
    }
    return text;
  }

  WallClock clock_;
  std::vector<std::string> log_;
  ManualDevice* device_ = nullptr;
  std::unique_ptr<GpuAgent> agent_;
};

TEST_F(GpuLanes, WorkSideBySide) {
  submit(message(Op::run, kCompute, 1));
  submit(message(Op::run, kCompute, 2));
  submit(message(Op::move, kCopy, 3));
  submit(message(Op::move, kCopy, 4));
  EXPECT_FALSE(agent_->waiting());
  EXPECT_EQ(agent_->drive(), Drive::busy);
  EXPECT_TRUE(agent_->waiting());
  EXPECT_EQ(agent_->drive(), Drive::idle);
  EXPECT_EQ(polled(), "");
  end(kCopy);
  EXPECT_EQ(polled(), "3 on 1");
  end(kCompute);
  end(kCompute);
  EXPECT_EQ(polled(), "1 on 0, 2 on 0");
  end(kCopy);
  EXPECT_EQ(polled(), "4 on 1");
  EXPECT_FALSE(agent_->waiting());
  EXPECT_THAT(log_, ElementsAre("copy 3", "compute 1", "copy 4", "compute 2"));
}

TEST_F(GpuLanes, ADemandOvertakesWhatWaitsAndNothingThatWasBegun) {
  submit(message(Op::move, kCopy, 1, Priority::prefetch));
  agent_->drive();
  submit(message(Op::move, kCopy, 2, Priority::migration));
  submit(message(Op::move, kCopy, 3, Priority::prefetch));
  submit(message(Op::move, kCopy, 4, Priority::prefetch));
  submit(message(Op::move, kCopy, 5));
  Message raise = message(Op::raise, kCopy, 6);
  raise.about = {4, 1};
  submit(raise);
  raise.id = {7, 1}, raise.about = {1, 1};
  submit(raise);
  EXPECT_EQ(polled(), "6 on 1, 7 on 1");
  for (int i = 0; i < 5; ++i) end(kCopy);
  EXPECT_EQ(polled(), "1 on 1, 4 on 1, 5 on 1, 3 on 1, 2 on 1");
}

TEST_F(GpuLanes, WhatWaitsCanBeCancelled) {
  for (const uint32_t slot : {1, 2}) submit(message(Op::move, kCopy, slot));
  agent_->drive();
  for (const uint32_t slot : {1, 2}) {
    Message cancel = message(Op::cancel, kCopy, slot + 2);
    cancel.about = {slot, 1};
    submit(cancel);
  }
  EXPECT_EQ(polled(), "3 on 1, 2 cancelled on 1, 4 on 1");
  end(kCopy);
  EXPECT_EQ(polled(), "1 on 1");
}

TEST_F(GpuLanes, ARunWaitsForTheMoveThatItNames) {
  for (const uint32_t slot : {1, 2}) submit(message(Op::move, kCopy, slot));
  Message run = message(Op::run, kCompute, 3);
  run.about = {2, 1};
  submit(run);
  submit(message(Op::run, kCompute, 4));  // results are added in this order
  agent_->drive();
  end(kCopy);
  EXPECT_THAT(log_, ElementsAre("copy 1", "copy 2"));
  end(kCopy);
  EXPECT_THAT(log_, ElementsAre("copy 1", "copy 2", "compute 3"));
  end(kCompute);
  end(kCompute);
  EXPECT_EQ(polled(), "1 on 1, 2 on 1, 3 on 0, 4 on 0");
}

TEST_F(GpuLanes, InOneLaneTheMoveOvertakesItsRun) {
  submit(message(Op::move, kCompute, 1));
  submit(message(Op::move, kCompute, 2, Priority::prefetch));
  Message run = message(Op::run, kCompute, 3);
  run.about = {2, 1};
  submit(run);
  submit(message(Op::run, kCompute, 4));
  agent_->drive();
  for (int i = 0; i < 4; ++i) end(kCompute);
  EXPECT_THAT(log_, ElementsAre("compute 1", "compute 2", "compute 3", "compute 4"));
}

TEST_F(GpuLanes, ARunBehindAMoveThatFailsIsCancelled) {
  submit(message(Op::move, kCopy, 1));
  submit(message(Op::move, kCopy, 2));
  Message run = message(Op::run, kCompute, 3);
  run.about = {2, 1};
  submit(run);
  device_->status = DoneStatus::internal;
  agent_->drive();
  end(kCopy);
  end(kCopy);
  EXPECT_EQ(polled(), "1 internal on 1, 2 internal on 1, 3 cancelled on 0");
  run.id = {4, 1}, run.about = {1, 1};
  submit(run);  // sent before its sender received that completion
  agent_->drive();
  EXPECT_EQ(polled(), "4 cancelled on 0");
  submit(message(Op::run, kCompute, 5));
  agent_->drive();
  EXPECT_THAT(log_, ElementsAre("copy 1", "copy 2", "compute 5"));
}

// Lanes beyond the number of engines share the last engine.
TEST_F(GpuLanes, EachCompletionNamesItsMessagesLane) {
  submit(message(Op::move, 5, 1));
  submit(message(Op::move, 7, 2));
  agent_->drive();
  end(kCopy);
  end(kCopy);
  EXPECT_EQ(polled(), "1 on 5, 2 on 7");
}

// One neuron whose weights are all one, in the host's memory 1. The device is memory 2.
class HostGpu : public testing::Test {
 protected:
  static constexpr MemoryId kHost = 1, kDevice = 2;
  static constexpr uint16_t kAgent = 4;
  static constexpr uint64_t kNeuron = kNeuronOfOne;

  void SetUp() override { make({.bytes_per_second = kNeuron * 1'000'000, .latency_ns = 500}); }
  void make(HostDevice::Link link) {
    plan_ = plan_of_one_neuron();
    std::fill_n(reinterpret_cast<float*>(host_.data()), 16 * 8, 1.0F);
    pools_ = {};
    pools_.add_memory(kHost, std::as_writable_bytes(std::span(host_)));
    DramAgent::Options options;
    options.number = kAgent;
    options.memory = kDevice;
    options.arena_bytes = 4096;
    options.staging_bytes = 4096;
    auto device = HostDevice::create(options, link, pools_, clock_, plan_, best_kernels(),
                                     std::make_unique<Team>(Team::Options{}));
    ASSERT_TRUE(device.ok()) << device.error().line();
    device_ = std::move(*device);
  }
  DeviceRequest request(Op op, Unit unit) {
    DeviceRequest request;
    unit_ = unit;
    request.message.op = op;
    request.message.from = kHost;
    request.message.memory = kDevice;
    request.message.unit_bytes = kNeuron;
    request.message.rows = 2;
    request.payload = {.units = {&unit_, 1}, .rows = rows_};
    request.since_ns = clock_.now;
    return request;
  }
  std::optional<Done> copy() { return device_->over(Device::Engine::copy); }
  std::vector<float> given(uint32_t row) const {
    const auto* out = reinterpret_cast<const float*>(pools_.activations(kAgent).data() + offset_of_out());
    return {out + row * stride(), out + row * stride() + 16};
  }
  uint64_t offset_of_out() const { return buffer_offsets(plan_)[1]; }
  uint32_t stride() const { return buffer_stride(plan_.buffers[1]); }

  ManualClock clock_;
  PoolTable pools_;
  ComputePlan plan_;
  struct alignas(64) Line {
    float values[16] = {};
  };
  std::array<Line, 8> host_ = {};
  std::vector<RowInfo> rows_ = std::vector<RowInfo>(2);
  Unit unit_;
  std::unique_ptr<HostDevice> device_;
};

TEST_F(HostGpu, NobodyElseReachesItsMemory) {
  EXPECT_TRUE(pools_.memory(kDevice).empty());
  EXPECT_EQ(pools_.activations(kAgent).size(), buffer_offsets(plan_).back());
}

// A neuron takes 1,000 ns and each message 500. A message that arrives while the link is busy begins when the
// link is free, whenever the device is polled.
TEST_F(HostGpu, ACopyTakesTheTimeOfItsLink) {
  const DeviceRequest first = request(Op::move, {0, 0});
  device_->begin(Device::Engine::copy, first);
  clock_.now += 1'499;
  EXPECT_EQ(copy(), std::nullopt);
  clock_.now += 1;
  auto done = copy();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->status, DoneStatus::ok);
  EXPECT_EQ(done->bytes, kNeuron);
  EXPECT_EQ(done->done_ns - done->start_ns, 1'500u);
  clock_.now += 700;
  const DeviceRequest second = request(Op::move, {0, 64});  // arrives now, begun later
  clock_.now += 5'000;
  device_->begin(Device::Engine::copy, second);
  done = copy();
  ASSERT_TRUE(done.has_value());
  EXPECT_EQ(done->start_ns, second.since_ns);
}

TEST_F(HostGpu, InsideItsMemoryNothingCrossesTheLink) {
  DeviceRequest inside = request(Op::move, {0, 16});
  inside.message.from = kDevice;
  device_->begin(Device::Engine::compute, inside);
  EXPECT_TRUE(device_->over(Device::Engine::compute).has_value());
}

// The bytes are read from the host when the copy ends, not before.
TEST_F(HostGpu, WhatIsCopiedIsThereWhenItIsOver) {
  device_->begin(Device::Engine::copy, request(Op::move, {0, 64}));
  std::fill_n(reinterpret_cast<float*>(host_.data()), 16 * 8, 2.0F);
  clock_.now += 1'500;
  ASSERT_TRUE(copy().has_value());
  const std::vector<float> x(16, 1.0F);
  const Take take{.what = Take::What::input, .stride = 8, .columns = 8, .values = x.data()};
  const Give give{static_cast<uint32_t>(offset_of_out() / kPlaceUnit), stride(), 2, 3};
  DeviceRequest run = request(Op::run, {0, 64});
  run.payload.takes = {&take, 1};
  run.payload.gives = {&give, 1};
  device_->begin(Device::Engine::compute, run);
  EXPECT_EQ(device_->over(Device::Engine::compute)->status, DoneStatus::ok);
  // Exactly the requested columns of both rows.
  for (const uint32_t row : {0, 1}) {
    EXPECT_THAT(given(row), ElementsAre(0, 0, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) << row;
  }
}

TEST_F(HostGpu, ADescriptorTellsWhenACopyIsOver) {
  pollfd waits{device_->wait_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&waits, 1, 0), 0);
  clock_.now = now_ns();
  device_->begin(Device::Engine::copy, request(Op::move, {0, 0}));
  EXPECT_EQ(::poll(&waits, 1, 10'000), 1);
  clock_.now = now_ns();
  EXPECT_TRUE(copy().has_value());
  EXPECT_EQ(::poll(&waits, 1, 0), 0);
}

TEST_F(HostGpu, WithoutARateACopyIsOverAtOnce) {
  make({});
  device_->begin(Device::Engine::copy, request(Op::move, {0, 0}));
  EXPECT_TRUE(copy().has_value());
}

TEST_F(HostGpu, AMemoryThatThereIsNotIsAnError) {
  make({});
  DeviceRequest nowhere = request(Op::move, {0, 0});
  nowhere.message.from = 9;
  device_->begin(Device::Engine::copy, nowhere);
  EXPECT_EQ(copy()->status, DoneStatus::invalid_argument);
}

}  // namespace
}  // namespace tierd
