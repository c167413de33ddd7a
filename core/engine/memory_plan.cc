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

// Divides one tier.
class TierPlanner {
 public:
  TierPlanner(const Manifest& manifest, const MemoryRequest& request, const TierRequest& tier)
      : manifest_(manifest), model_(request.model), fit_(request.fit), tier_(tier) {
    plan_.memories = tier.memories;
    for (const StoredSite& site : manifest.sites) {
      if (site.alias_of != kNoSite) continue;
      plan_.whole += site.neurons() * site.slot_bytes();
      const uint64_t together = std::min(site.neurons(), run_of(site.cut));
      largest_ = std::max(largest_, align_up(together * site.slot_bytes(), kDirectIoAlignment));
    }
    if (tier.bounces) bounce_ = bounce_of(manifest);
    if (!tier.units.empty()) {
      const std::vector<UnitPlan> units = plan_model(manifest, model_).units;
      for (const UnitId unit : tier.units) {
        for (const uint32_t tensor : units[unit].tensors)
          plan_.tensors += manifest.extents[manifest.resident[tensor].extent].bytes;
        plan_.kv += kv_bytes(units[unit].compute);
      }
    }
    for (const TableRequest& table : tier.tables) plan_.tables += table.bytes;
    fixed_ = plan_.tensors + plan_.tables + plan_.kv;
    least_staging_ = tier.memories * kLeastBlocks * largest_;
    least_rows_ = std::min(model_.max_rows, model_.logit_rows);
    plan_.least = least_of(least_rows_);
  }

  // Says how much there is, and of how many rows prefill chunks may be.
  Result<uint32_t> rows() {
    TIERD_TRY(take_capacity());
    // The largest prefill chunk whose activations take no more than their share, unless there is plenty.
    uint32_t rows = model_.max_rows;
    plenty_ = plan_.capacity >= least_of(rows) + plan_.whole;
    const auto too_large = [&] {
      return activations_of(rows) > plan_.capacity / kActivationShare || least_of(rows) > plan_.capacity;
    };
    while (!plenty_ && rows > least_rows_ && too_large()) rows = std::max(least_rows_, rows / 2);
    return rows;
  }

  // With chunks of so many rows, at most as many as `rows` has said.
  TierMemory divide(uint32_t rows) {
    plan_.activations = activations_of(rows, tier_.units.size());
    plan_.given = activations_of(rows, tier_.giving_units);
    const uint64_t over = plan_.capacity - least_of(rows) - (plenty_ ? plan_.whole : 0);
    const uint64_t bounce_share = std::clamp(plan_.capacity / kBounceShare, bounce_.least, bounce_.most);
    plan_.bounce = std::min(plenty_ ? bounce_.most : bounce_share, bounce_.least + over);
    plan_.bounce -= plan_.bounce % kDirectIoAlignment;

    const uint64_t rest = plan_.capacity - fixed_ - plan_.activations - plan_.given - plan_.bounce;
    uint64_t staging = least_staging_;
    if (rest < plan_.whole + staging) {
      staging = std::clamp(plan_.capacity / kStagingShare, staging, std::max(staging, tier_.most_staging));
      staging = std::min(staging, rest);
    }
    staging /= tier_.memories;
    const uint64_t block = std::clamp(staging / kBlocksWanted / largest_ * largest_, largest_,
                                      std::max(largest_, kLargestBlock / largest_ * largest_));
    plan_.block_bytes = static_cast<uint32_t>(block);
    plan_.blocks = static_cast<uint32_t>(staging / block);
    plan_.staging = uint64_t{plan_.block_bytes} * plan_.blocks * tier_.memories;
    plan_.arena = std::min(plan_.whole, rest - plan_.staging);
    return plan_;
  }

 private:
  uint64_t activations_of(uint32_t rows, size_t units) const {
    if (units == 0) return 0;
    ModelOptions options = model_;
    options.max_rows = rows;
    return units * activation_bytes(plan_model(manifest_, options).any());
  }
  uint64_t activations_of(uint32_t rows) const {
    return activations_of(rows, tier_.units.size() + tier_.giving_units);
  }
  // Without any weights.
  uint64_t least_of(uint32_t rows) const {
    return fixed_ + activations_of(rows) + least_staging_ + bounce_.least;
  }

  Status take_capacity() {
    switch (tier_.capacity.kind) {
      case Capacity::Kind::all:
        plan_.capacity = least_of(model_.max_rows) + plan_.whole + (bounce_.most - bounce_.least);
        break;
      case Capacity::Kind::share:
        plan_.capacity =
            static_cast<uint64_t>(tier_.capacity.share * static_cast<double>(manifest_.tensor_bytes));
        break;
      case Capacity::Kind::bytes:
        plan_.capacity = tier_.capacity.bytes;
        break;
    }
    if (plan_.capacity >= plan_.least) return {};
    if (!fit_) {
      // Without the tables it would do, or they are too much by themselves.
      const bool tables = plan_.tables > plan_.capacity || plan_.capacity >= plan_.least - plan_.tables;
      return tables ? tables_too_large() : too_little();
    }
    plan_.capacity = plan_.least;
    plan_.raised_to_least = true;
    return {};
  }

  Error too_little() const {
    return {Code::no_space, fmt::format("tiers.{}.capacity", tier_.name),
            fmt::format(
                "{} is too little: this model with a context of {}{} needs at least {} ({} bytes: "
                "KV cache {}, activations and staging {}, small tensors {}{}{}); give that much, a smaller "
                "context (-c){}, or --fit",
                bytes_text(plan_.capacity), model_.context, for_each_text(model_), bytes_text(plan_.least),
                plan_.least, bytes_text(plan_.kv), bytes_text(plan_.least - fixed_ - bounce_.least),
                bytes_text(plan_.tensors),
                bounce_.least == 0 ? "" : ", bounce buffer " + bytes_text(bounce_.least),
                plan_.tables == 0 ? "" : ", tables of plugins " + bytes_text(plan_.tables),
                model_.sequences == 1 ? "" : ", fewer sequences (-np)")};
  }

  // Names the largest.
  Error tables_too_large() const {
    const TableRequest& largest = *std::ranges::max_element(tier_.tables, {}, &TableRequest::bytes);
    return {Code::no_space, largest.file,
            fmt::format("its tensors need {}{}, tiers.{}.capacity is {}; with them this model with a context "
                        "of {}{} needs at least {} ({} bytes): give that much, or --fit",
                        bytes_text(largest.bytes),
                        largest.bytes == plan_.tables
                            ? ""
                            : fmt::format(" of {} for tables of plugins", bytes_text(plan_.tables)),
                        tier_.name, bytes_text(plan_.capacity), model_.context, for_each_text(model_),
                        bytes_text(plan_.least), plan_.least)};
  }

  const Manifest& manifest_;
  const ModelOptions& model_;
  const bool fit_;
  const TierRequest& tier_;
  uint64_t largest_ = 0;  // what must be in staging at once: a neuron, or a run that is summed together
  Bounce bounce_;
  uint64_t fixed_ = 0;
  uint64_t least_staging_ = 0;
  uint32_t least_rows_ = 0;
  bool plenty_ = false;  // everything is resident
  TierMemory plan_;
};

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

// A chunk has as many rows as the tightest tier allows.
Result<MemoryPlan> plan_memory(const Manifest& manifest, const MemoryRequest& request) {
  MemoryPlan plan;
  plan.model = request.model;
  std::vector<TierPlanner> planners;
  for (const TierRequest& tier : request.tiers) {
    TIERD_ASSIGN(const uint32_t rows, planners.emplace_back(manifest, request, tier).rows());
    plan.model.max_rows = std::min(plan.model.max_rows, rows);
  }
  for (TierPlanner& planner : planners) plan.tiers.push_back(planner.divide(plan.model.max_rows));
  return plan;
}

}  // namespace tierd
