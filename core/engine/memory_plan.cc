#include "core/engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/units.h"

namespace tierd {
namespace {

constexpr uint64_t kLargestBlock = 4u << 20;
constexpr uint64_t kBlocksWanted = 8;  // in flight while one is computed
constexpr uint64_t kLeastBlocks = 2;   // one for a demand, one ahead of it
constexpr uint64_t kStagingShare = 8;  // at most an eighth of the budget passes through
constexpr uint64_t kActivationShare = 16;
constexpr uint64_t kBounceShare = 64;
// A hundred joined reads of 128 KiB in flight. With 4 MiB fewer were, and the disk gave 1.4 GB/s instead
// of 1.6.
constexpr uint64_t kLargestBounce = 16u << 20;
constexpr uint64_t kLeastBounced = 2;  // one is read while one is copied

std::string bytes_text(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

std::string for_each_text(const ModelOptions& model) {
  return model.sequences == 1 ? "" : fmt::format(" for each of {} sequences", model.sequences);
}

// Names the largest.
Error tables_too_large(const MemoryPlan& plan, const MemoryRequest& request) {
  const TableRequest& largest =
      *std::max_element(request.tables.begin(), request.tables.end(),
                        [](const TableRequest& a, const TableRequest& b) { return a.bytes < b.bytes; });
  return {
      Code::no_space, largest.file,
      fmt::format("its tensors need {}{}, tiers.dram.capacity is {}; with them this model with a context of "
                  "{}{} needs at least {} ({} bytes): give that much, or --fit",
                  bytes_text(largest.bytes),
                  largest.bytes == plan.tables
                      ? ""
                      : fmt::format(" of {} for tables of plugins", bytes_text(plan.tables)),
                  bytes_text(plan.capacity), request.model.context, for_each_text(request.model),
                  bytes_text(plan.least), plan.least)};
}

// How much memory reads of bundles may take on their way: they are small, lie packed, and are read together
// with what lies between them.
struct Bounce {
  uint64_t least = 0;
  uint64_t most = 0;
};
Bounce bounce_of(const Manifest& manifest) {
  Bounce bounce;
  uint64_t bundles = 0;
  for (const StoredSite& site : manifest.sites) {
    if (site.n_column_parts() == 0) continue;  // these begin and end blocks of the disk
    bundles += site.neurons() * site.slot_bytes();
    // One that is not aligned lies in one block more than it would fill.
    const uint64_t blocks = divide_up(site.slot_bytes(), kDirectIoAlignment) + (site.aligned() ? 0 : 1);
    bounce.least = std::max(bounce.least, kLeastBounced * blocks * kDirectIoAlignment);
  }
  bounce.most = std::max(bounce.least, std::min(align_up(bundles, kDirectIoAlignment), kLargestBounce));
  return bounce;
}

}  // namespace

Result<Capacity> parse_capacity(std::string_view text, std::string_view origin) {
  Capacity capacity;
  if (text == "all") return capacity;
  if (!text.empty() && text.back() == '%') {
    double percent = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size() - 1, percent);
    if (status != std::errc() || end != text.data() + text.size() - 1 || !(percent > 0) || percent > 10000) {
      return Error{Code::invalid_argument, std::string(origin),
                   fmt::format("'{}' is not a share; write for example 50%", text)};
    }
    capacity.kind = Capacity::Kind::share;
    capacity.share = percent / 100;
    return capacity;
  }
  TIERD_ASSIGN(capacity.bytes, parse_bytes(text, origin));
  capacity.kind = Capacity::Kind::bytes;
  return capacity;
}

Result<MemoryPlan> plan_memory(const Manifest& manifest, const MemoryRequest& request) {
  MemoryPlan plan;
  plan.model = request.model;
  uint64_t largest = 0;  // what must be in staging at once: a neuron, or a run that is summed together
  for (const StoredSite& site : manifest.sites) {
    if (site.alias_of != kNoSite) continue;
    plan.whole += site.neurons() * site.slot_bytes();
    const uint64_t together = std::min(site.neurons(), run_of(site.cut));
    largest = std::max(largest, align_up(together * site.slot_bytes(), kDirectIoAlignment));
  }
  const Bounce bounce = bounce_of(manifest);
  for (const UnitPlan& unit : plan_model(manifest, request.model).units) {
    for (const uint32_t tensor : unit.tensors)
      plan.tensors += manifest.extents[manifest.resident[tensor].extent].bytes;
    plan.kv += kv_bytes(unit.compute);
  }
  const auto activations_of = [&](uint32_t rows) {
    ModelOptions options = request.model;
    options.max_rows = rows;
    return request.model.units * activation_bytes(plan_model(manifest, options).any());
  };
  for (const TableRequest& table : request.tables) plan.tables += table.bytes;
  const uint64_t fixed = plan.tensors + plan.tables + plan.kv;
  const uint64_t least_staging = request.model.units * kLeastBlocks * largest;
  // Without any weights in DRAM.
  const auto least_of = [&](uint32_t rows) {
    return fixed + activations_of(rows) + least_staging + bounce.least;
  };
  const uint32_t least_rows = std::min(request.model.max_rows, request.model.logit_rows);
  plan.least = least_of(least_rows);

  switch (request.capacity.kind) {
    case Capacity::Kind::all:
      plan.capacity = least_of(request.model.max_rows) + plan.whole + (bounce.most - bounce.least);
      break;
    case Capacity::Kind::share:
      plan.capacity =
          static_cast<uint64_t>(request.capacity.share * static_cast<double>(manifest.tensor_bytes));
      break;
    case Capacity::Kind::bytes:
      plan.capacity = request.capacity.bytes;
      break;
  }
  if (plan.capacity < plan.least) {
    if (!request.fit) {
      // Without the tables it would do, or they are too much by themselves.
      if (plan.tables > plan.capacity || plan.capacity >= plan.least - plan.tables) {
        return tables_too_large(plan, request);
      }
      return Error{
          Code::no_space, "tiers.dram.capacity",
          fmt::format(
              "{} is too little: this model with a context of {}{} needs at least {} ({} bytes: "
              "KV cache {}, activations and staging {}, small tensors {}{}{}); give that much, a smaller "
              "context (-c){}, or --fit",
              bytes_text(plan.capacity), request.model.context, for_each_text(request.model),
              bytes_text(plan.least), plan.least, bytes_text(plan.kv),
              bytes_text(plan.least - fixed - bounce.least), bytes_text(plan.tensors),
              bounce.least == 0 ? "" : ", bounce buffer " + bytes_text(bounce.least),
              plan.tables == 0 ? "" : ", tables of plugins " + bytes_text(plan.tables),
              request.model.sequences == 1 ? "" : ", fewer sequences (-np)")};
    }
    plan.capacity = plan.least;
    plan.raised_to_least = true;
  }

  // The largest prefill chunk whose activations take no more than their share, unless there is plenty.
  uint32_t rows = request.model.max_rows;
  const bool plenty = plan.capacity >= least_of(rows) + plan.whole;
  const auto too_large = [&] {
    return activations_of(rows) > plan.capacity / kActivationShare || least_of(rows) > plan.capacity;
  };
  while (!plenty && rows > least_rows && too_large()) {
    rows = std::max(least_rows, rows / 2);
  }
  plan.model.max_rows = rows;
  plan.activations = activations_of(rows);

  const uint64_t over = plan.capacity - least_of(rows) - (plenty ? plan.whole : 0);
  const uint64_t bounce_share = std::clamp(plan.capacity / kBounceShare, bounce.least, bounce.most);
  plan.bounce = std::min(plenty ? bounce.most : bounce_share, bounce.least + over);
  plan.bounce -= plan.bounce % kDirectIoAlignment;

  const uint64_t rest = plan.capacity - fixed - plan.activations - plan.bounce;
  uint64_t staging = least_staging;
  if (rest < plan.whole + staging) {
    staging = std::clamp(plan.capacity / kStagingShare, staging, std::max(staging, request.most_staging));
    staging = std::min(staging, rest);
  }
  staging /= request.model.units;
  const uint64_t block = std::clamp(staging / kBlocksWanted / largest * largest, largest,
                                    std::max(largest, kLargestBlock / largest * largest));
  plan.block_bytes = static_cast<uint32_t>(block);
  plan.blocks = static_cast<uint32_t>(staging / block);
  plan.staging = uint64_t{plan.block_bytes} * plan.blocks * request.model.units;
  plan.arena = std::min(plan.whole, rest - plan.staging);
  return plan;
}

}  // namespace tierd
