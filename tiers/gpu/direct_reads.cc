#include "tiers/gpu/direct_reads.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/align.h"
#include "tiers/flash/break_even.h"
#include "tiers/flash/flash_agent.h"

namespace tierd {
namespace {

// The default depth of the agent `flash`.
constexpr uint32_t kDepth = 128;

// A flash agent with the objects that it refers to.
class DirectReads final : public Agent {
 public:
  // Reads that the device does by itself.
  DirectReads(const AgentContext& context, DirectPath::OwnReads reads, uint32_t credits)
      : check_(std::move(reads.check)) {
    pools_.add_memory(context.compute->memory, reads.memory);
    FlashOptions options;
    options.credits = credits;
    options.pieces = context.read->pieces;
    options.check = check_.get();
    options.lands_anywhere = true;
    agent_.emplace(context.number, pools_, context.clock, std::move(reads.device), context.read->extents,
                   options);
  }
  // Reads into memory of the host, from which the device copies.
  DirectReads(const AgentContext& context, DirectPath& path, std::unique_ptr<BlockDevice> device,
              BounceBuffer bounce, uint64_t gap_bytes, uint32_t credits) {
    FlashOptions options;
    options.credits = credits;
    options.pieces = context.read->pieces;
    options.gap_bytes = gap_bytes;
    options.apart = &path;
    agent_.emplace(context.number, pools_, context.clock, std::move(device), context.read->extents, options,
                   std::move(bounce));
  }

  std::string_view name() const override { return agent_->name(); }
  uint32_t credits() const override { return agent_->credits(); }
  Submit submit(const Message& message, const Payload& payload) override {
    return agent_->submit(message, payload);
  }
  Drive drive() override { return agent_->drive(); }
  size_t poll(std::span<Done> done) override { return agent_->poll(done); }
  int wait_fd() const override { return agent_->wait_fd(); }
  bool waiting() const override { return agent_->waiting(); }
  AgentCounts counts() const { return agent_->counts(); }

 private:
  PoolTable pools_;  // the device's addresses of its memory
  const std::unique_ptr<LandedCheck> check_;
  std::optional<FlashAgent> agent_;
};

bool is_packed(const ExtentRef& extent) {
  return (extent.offset | extent.bytes) % kDirectIoAlignment != 0;
}

// Returns the longest gap between packed extents that is worth reading; runs of rows follow each other.
uint64_t gap_of(const ReadTask& task, const DeviceOptions& device, uint64_t most) {
  if (task.open_device || std::ranges::none_of(task.extents, is_packed)) return 0;
  const auto measured = measure_break_even(task.path, device);
  return measured.ok() ? std::min(measured->bytes, most) : 0;
}

MadeAgent made_of(std::unique_ptr<DirectReads> reads, std::string way, std::string why) {
  MadeAgent made;
  made.reading.way = std::move(way);
  made.reading.way_why = std::move(why);
  made.counts = [reads = reads.get()] { return reads->counts(); };
  made.agent = std::move(reads);
  return made;
}

}  // namespace

Result<MadeAgent> make_direct_reads(const AgentContext& context, Device& device, uint32_t credits) {
  const ReadTask& task = *context.read;
  DirectPath* const path = device.direct();
  if (path == nullptr)
    return Error{Code::unsupported, context.table + "." + kDirectParameter,
                 "the store cannot be read directly into the memory of this device; set false"};
  // A device that a test opens in place of the file is read as any block device.
  auto own = task.open_device ? Error{Code::unsupported, task.path, "the file is opened by a test"}
                              : path->open(task.path);
  if (own.ok()) {
    std::string way = own->way;
    auto reads = std::make_unique<DirectReads>(context, std::move(*own), credits);
    return made_of(std::move(reads), std::move(way), "");
  }
  const DeviceOptions options = {.depth = kDepth};
  TIERD_ASSIGN(std::unique_ptr<BlockDevice> opened,
               task.open_device ? task.open_device(task.path, options) : open_device(task.path, options));
  TIERD_ASSIGN(BounceBuffer bounce, BounceBuffer::create(task.bounce_bytes));
  opened->register_memory(bounce.memory());
  DirectPath::Staging staging = path->stage(bounce.memory());
  if (staging.why.empty()) staging.why = own.error().detail;
  if (own.code() != Code::unsupported)
    spdlog::warn("{}; what {} reads directly is {}", own.error().line(), context.table, staging.way);
  const uint64_t gap = gap_of(task, options, bounce.bytes());
  auto reads =
      std::make_unique<DirectReads>(context, *path, std::move(opened), std::move(bounce), gap, credits);
  return made_of(std::move(reads), std::move(staging.way), std::move(staging.why));
}

}  // namespace tierd
