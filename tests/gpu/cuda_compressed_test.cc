// A device computes from neurons kept as bitmaps. Every cut gives the bits of the dense neurons, and
// malformed bitmaps are refused.
#include <gtest/gtest.h>

#include <cstring>

#include "core/base/align.h"
#include "tests/dram/pruned_neurons.h"
#include "tests/gpu/one_neuron.h"
#include "tiers/gpu/cuda/cuda_device.h"
#include "tiers/gpu/team_work.h"

namespace tierd::cuda {
namespace {

constexpr uint32_t kPassRows = 3;
constexpr BufferId kContribution = 4;

class DeviceOfPruned {
 public:
  DeviceOfPruned(const PrunedNeurons& neurons, bool gather)
      : neurons_(neurons), plan_(plan_of_pruned(neurons, gather, kPassRows)) {
    plan_.buffers.push_back({"contribution", tierd::neurons(neurons.cut), 0});
    plan_.sites.front().contribution = kContribution;
    const uint64_t bytes = neurons.memory.size() * sizeof(PrunedNeurons::Line);
    const DeviceOptions options{
        .number = 4, .table = "tiers.gpu", .memory = 2, .arena_bytes = bytes, .staging_bytes = 4096};
    auto made = CudaDevice::create(
        options, pools_, clock_, plan_,
        std::make_unique<TeamWork>(best_kernels(), std::make_unique<Team>(Team::Options{.workers = 1})));
    EXPECT_TRUE(made.ok()) << made.error().line();
    device_ = std::move(*made);
    device_->load(0, {neurons.data(), bytes});
  }

  // Computes these units' results and, with `measured`, each neuron's contribution.
  Done run(std::span<const Unit> units, bool measured) {
    const SiteWork& site = plan_.sites.front();
    Random random(9);
    const uint32_t width = inputs(neurons_.cut);
    std::vector<float> x(size_t{kPassRows} * width);
    for (float& value : x) value = random.symmetric();
    std::vector<RowInfo> rows;
    for (uint32_t i = 0; i < kPassRows; ++i) rows.push_back({7 * i, 0, 0, i});
    std::vector<uint64_t> masks(tierd::neurons(neurons_.cut), 0b101);
    const Take take{.what = Take::What::input, .stride = width, .columns = width, .values = x.data()};
    const Give gives[] = {give(site.out, outputs(neurons_.cut)),
                          give(kContribution, tierd::neurons(neurons_.cut))};
    DeviceRequest request;
    request.message.op = Op::run;
    request.message.rows = kPassRows;
    request.message.flags = kPartial;
    request.payload.units = units;
    request.payload.rows = rows;
    request.payload.gives = gives;
    if (!site.gather) request.payload.takes = {&take, 1};
    if (measured) {
      request.message.flags |= kMeasure;
      request.payload.masks = masks;
    }
    device_->begin(Device::Engine::compute, request);
    for (;;) {
      if (const auto done = device_->over(Device::Engine::compute)) return *done;
    }
  }
  std::vector<float> given() const {
    const std::span<const std::byte> all = pools_.activations(4);
    std::vector<float> values;
    for (const BufferId b : {plan_.sites.front().out, kContribution}) {
      const uint64_t bytes = uint64_t{kPassRows} * buffer_stride(plan_.buffers[b]) * sizeof(float);
      const size_t before = values.size();
      values.resize(before + bytes / sizeof(float));
      std::memcpy(values.data() + before, all.data() + buffer_offsets(plan_)[b], bytes);
    }
    return values;
  }

 private:
  Give give(BufferId buffer, uint32_t columns) const {
    return {static_cast<uint32_t>(buffer_offsets(plan_)[buffer] / kPlaceUnit),
            buffer_stride(plan_.buffers[buffer]), 0, columns};
  }

  const PrunedNeurons& neurons_;
  ComputePlan plan_;
  ManualClock clock_;
  PoolTable pools_;
  std::unique_ptr<CudaDevice> device_;
};

std::vector<PrunedCase> cases() {
  std::vector<PrunedCase> cases = pruned_cases();
  cases.push_back({"runs that are not expanded together", Columns{80, 131072}});
  return cases;
}

TEST(CudaCompressed, GivesTheBitsOfTheDenseNeurons) {
  for (const PrunedCase& tried : cases()) {
    SCOPED_TRACE(tried.name);
    const PrunedNeurons dense(tried.cut, false, Random(1)), compressed(tried.cut, true, Random(1));
    DeviceOfPruned expected(dense, tried.gather), found(compressed, tried.gather);
    for (const bool measured : {false, true}) {
      const bool added = is_cut_into<Bundles>(tried.cut) || is_cut_into<Columns>(tried.cut);
      if (measured && !added) continue;
      ASSERT_EQ(expected.run(dense.units, measured).status, DoneStatus::ok);
      const Done done = found.run(compressed.units, measured);
      ASSERT_EQ(done.status, DoneStatus::ok);
      const std::vector<float> a = expected.given(), b = found.given();
      ASSERT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0);
      EXPECT_TRUE(std::ranges::any_of(b, [](float value) { return value != 0; }));
      uint64_t bytes = 0;
      for (const uint32_t of_neuron : compressed.compression->bytes) bytes += of_neuron;
      EXPECT_TRUE(tried.gather || done.bytes == bytes) << done.bytes;
    }
  }
}

// Only the run that finds a malformed neuron completes as corrupt.
TEST(CudaCompressed, MalformedNeuronsAreRefused) {
  for (const PrunedCase& tried : pruned_cases()) {
    for (const bool more : {true, false}) {
      SCOPED_TRACE(std::string(tried.name) + (more ? ", more" : ", fewer"));
      PrunedNeurons neurons(tried.cut, true, Random(2));
      std::memset(neurons.memory[neurons.units.back().place].bytes, more ? 0xff : 0, 8);
      DeviceOfPruned device(neurons, tried.gather);
      const std::span<const Unit> all(neurons.units), good = all.first(all.size() - 1);
      EXPECT_EQ(device.run(good, false).status, DoneStatus::ok);
      const Done done = device.run(all, false);
      EXPECT_EQ(done.status, DoneStatus::corrupt);
      EXPECT_EQ(done.n_done, 0U);
      EXPECT_EQ(device.run(good, false).status, DoneStatus::ok);
    }
  }
}

}  // namespace
}  // namespace tierd::cuda
