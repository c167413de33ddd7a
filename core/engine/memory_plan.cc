#include "core/engine/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/units.h"

namespace tierd {
namespace {

constexpr uint64_t kLargestBlock = 4u << 20;
// If a pass requests scattered neurons, piece by piece (Transfers::start), each piece has a block: enough for
// the requests of a pass and the read-ahead of the next one.
constexpr uint64_t kLargestScattered = 1u << 20;
constexpr uint64_t kBlocksWanted = 8;  // in flight while one is computed
constexpr uint64_t kLeastBlocks = 2;   // one for a demand, one ahead of it
constexpr uint64_t kStagingShare = 8;  // staging is at most this part (1/8) of the budget
constexpr uint64_t kActivationShare = 16;
constexpr uint64_t kBounceShare = 64;
constexpr uint64_t kDirectShare = 16;
// Room for a hundred joined reads of 128 KiB in flight. With 4 MiB the disk gave 1.4 GB/s instead of 1.6.
constexpr uint64_t kLargestBounce = 16u << 20;
constexpr uint64_t kLeastBounced = 2;  // one is read while one is copied

std::string bytes_text(uint64_t bytes) {
  return format_bytes(static_cast<double>(bytes));
}

std::string limit_text(const MemoryLimit& limit) {
  const std::string beside = limit.beside_bytes == 0 ? ""
                                                     : fmt::format(" beside {} for the process itself",
                                                                   bytes_text(limit.beside_bytes));
  return fmt::format("{} leaves no more{}", limit.source, beside);
}

std::string for_each_text(const ModelOptions& model) {
  return model.sequences == 1 ? "" : fmt::format(" for each of {} sequences", model.sequences);
}

// Bounce memory for reads of bundles, which are small and packed, so that a read also covers the gaps between
// them. Compressed neurons that are expanded as they land use it too.
struct Bounce {
  uint64_t least = 0;
  uint64_t most = 0;
};
Bounce bounce_of(const Manifest& manifest, bool compressed) {
  Bounce bounce;
  uint64_t bundles = 0;
  for (const StoredSite* stored : manifest.stored()) {
    const StoredSite& site = *stored;
    const bool expanded = compressed && !site.compressed.empty();
    if (site.n_column_parts() == 0 && !expanded) continue;  // these begin and end at disk blocks
    bundles += site.neurons() * site.slot_bytes();
    // An unaligned neuron touches one block more than it fills.
    const uint64_t blocks = divide_up(site.slot_bytes(), kDirectIoAlignment) + (site.aligned() ? 0 : 1);
    bounce.least = std::max(bounce.least, kLeastBounced * blocks * kDirectIoAlignment);
  }
  bounce.most = std::max(bounce.least, std::min(align_up(bundles, kDirectIoAlignment), kLargestBounce));
  return bounce;
}

// As above for agents that read into memory that is apart: all their reads land in bounce memory.
Bounce direct_bounce_of(const Manifest& manifest, uint32_t readers) {
  Bounce bounce;
  uint64_t whole = 0;
  for (const StoredSite* stored : manifest.stored()) {
    const StoredSite& site = *stored;
    whole += site.neurons() * site.slot_bytes();
    const uint64_t blocks = divide_up(site.slot_bytes(), kDirectIoAlignment) + (site.aligned() ? 0 : 1);
    bounce.least = std::max(bounce.least, kLeastBounced * blocks * kDirectIoAlignment);
  }
  bounce.most = std::max(bounce.least, std::min(align_up(whole, kDirectIoAlignment), kLargestBounce));
  bounce.least *= readers;
  bounce.most *= readers;
  return bounce;
}

// Plans one tier.
class TierPlanner {
 public:
  TierPlanner(const Manifest& manifest, const MemoryRequest& request, const TierRequest& tier)
      : manifest_(manifest), request_(request), model_(request.model), tier_(tier) {
    if (request.measures_beside) model_.measure = false;
    plan_.memories = tier.memories;
    plan_.automatic = tier.capacity.kind == Capacity::Kind::automatic;
    for (const StoredSite* stored : manifest.stored()) {
      const StoredSite& site = *stored;
      const uint64_t slot_bytes = tier.expands ? site.expanded_slot_bytes() : site.slot_bytes();
      plan_.whole += site.neurons() * slot_bytes;
      const uint64_t together = std::min(site.neurons(), run_of(site.cut));
      largest_ = std::max(largest_, align_up(together * slot_bytes, kDirectIoAlignment));
    }
    for (const StoredSite& site : model_.recoded) {
      if (tier.recodes) plan_.whole += site.neurons() * site.slot_bytes();
    }
    if (tier.bounces) bounce_ = bounce_of(manifest, tier.bounces_compressed);
    if (tier.direct_readers != 0) direct_ = direct_bounce_of(manifest, tier.direct_readers);
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

  // Returns the given capacity, or the one with which everything is resident. An automatic capacity includes
  // staging for neurons that stream all the same (a cache may keep nothing).
  uint64_t wanted() const {
    switch (tier_.capacity.kind) {
      case Capacity::Kind::share:
        return static_cast<uint64_t>(tier_.capacity.share * static_cast<double>(manifest_.tensor_bytes));
      case Capacity::Kind::bytes:
        return tier_.capacity.bytes;
      case Capacity::Kind::all:
      case Capacity::Kind::automatic:
        break;
    }
    const uint64_t all = least_of(model_.max_rows) + plan_.whole + (bounce_.most - bounce_.least) +
                         (direct_.most - direct_.least);
    return plan_.automatic ? all + more_staging() : all;
  }
  bool automatic() const { return plan_.automatic; }
  uint64_t capacity() const { return plan_.capacity; }
  const std::string& name() const { return tier_.name; }

  // Sets the capacity, raised to the least if allowed. Returns the longest prefill chunk, in rows.
  Result<uint32_t> take(uint64_t capacity) {
    plan_.capacity = capacity;
    TIERD_TRY(raise_to_least());
    // The largest prefill chunk whose activations take no more than their share, unless everything fits.
    uint32_t rows = model_.max_rows;
    plenty_ = plan_.capacity >= least_of(rows) + plan_.whole;
    const auto too_large = [&] {
      return activations_of(rows) > plan_.capacity / kActivationShare || least_of(rows) > plan_.capacity;
    };
    while (!plenty_ && rows > least_rows_ && too_large()) rows = std::max(least_rows_, rows / 2);
    return rows;
  }

  // Divides the capacity for chunks of `rows` rows, at most the result of `take`.
  TierMemory divide(uint32_t rows) {
    plan_.activations = activations_of(rows, tier_.units.size());
    plan_.given = activations_of(rows, tier_.giving_units);
    const uint64_t over = plan_.capacity - least_of(rows) - (plenty_ ? plan_.whole : 0);
    plan_.bounce = bounce_bytes(bounce_, kBounceShare, over);
    plan_.direct = bounce_bytes(direct_, kDirectShare, over - (plan_.bounce - bounce_.least));

    const uint64_t rest =
        plan_.capacity - fixed_ - plan_.activations - plan_.given - plan_.bounce - plan_.direct;
    uint64_t staging = least_staging_;
    if (plan_.automatic && rest >= plan_.whole + staging) {
      staging = std::min(rest - plan_.whole, staging + more_staging());
    } else if (rest < plan_.whole + staging) {
      const auto share = static_cast<uint64_t>(tier_.staging_share * static_cast<double>(plan_.capacity));
      const uint64_t most = std::max(staging, tier_.most_staging);
      staging =
          share != 0 ? std::max(share, staging) : std::clamp(plan_.capacity / kStagingShare, staging, most);
      staging = std::min(staging, rest);
    }
    staging /= tier_.memories;
    const uint64_t most = manifest_.layout == Layout::row ? kLargestBlock : kLargestScattered;
    const uint64_t block = std::clamp(staging / kBlocksWanted / largest_ * largest_, largest_,
                                      std::max(largest_, most / largest_ * largest_));
    plan_.block_bytes = static_cast<uint32_t>(block);
    plan_.blocks = static_cast<uint32_t>(staging / block);
    plan_.staging = uint64_t{plan_.block_bytes} * plan_.blocks * tier_.memories;
    plan_.arena = std::min(plan_.whole, rest - plan_.staging);
    if (request_.measures_beside) measure_beside(rows);
    return plan_;
  }

 private:
  void measure_beside(uint32_t rows) {
    const uint64_t without = plan_.activations + plan_.given;
    model_.measure = request_.model.measure;
    plan_.activations = activations_of(rows, tier_.units.size());
    plan_.given = activations_of(rows, tier_.giving_units);
    plan_.beside = plan_.activations + plan_.given - without;
    plan_.capacity += plan_.beside;
  }

  uint64_t activations_of(uint32_t rows, size_t units) const {
    if (units == 0) return 0;
    ModelOptions options = model_;
    options.max_rows = rows;
    return units * activation_bytes(plan_model(manifest_, options).any());
  }
  uint64_t activations_of(uint32_t rows) const {
    return activations_of(rows, tier_.units.size() + tier_.giving_units);
  }
  // Returns a share of the capacity, limited to the useful size and to the bytes left beyond the least.
  uint64_t bounce_bytes(const Bounce& bounce, uint64_t part, uint64_t over) const {
    const uint64_t share = std::clamp(plan_.capacity / part, bounce.least, bounce.most);
    const uint64_t bytes = std::min(plenty_ ? bounce.most : share, bounce.least + over);
    return bytes - bytes % kDirectIoAlignment;
  }
  // Returns the staging beyond the least, if staging were an eighth of all weights.
  uint64_t more_staging() const {
    const uint64_t staging = std::min(plan_.whole / kStagingShare, tier_.most_staging);
    return staging - std::min(staging, least_staging_);
  }
  // Returns the capacity needed without any weights.
  uint64_t least_of(uint32_t rows) const {
    return fixed_ + activations_of(rows) + least_staging_ + bounce_.least + direct_.least;
  }

  Status raise_to_least() {
    if (plan_.capacity >= plan_.least) return {};
    if (!request_.fit || !is_there(plan_.least)) {
      // The plan fits without the tables, or the tables alone exceed the capacity.
      const bool tables = plan_.tables > plan_.capacity || plan_.capacity >= plan_.least - plan_.tables;
      return tables ? tables_too_large() : too_little();
    }
    plan_.capacity = plan_.least;
    plan_.raised_to_least = true;
    return {};
  }

  bool is_there(uint64_t bytes) const { return request_.force || bytes <= request_.most.left_bytes; }

  Error too_little() const {
    const bool there = is_there(plan_.least);
    return {
        Code::no_space, fmt::format("tiers.{}.capacity", tier_.name),
        fmt::format(
            "{} is too little{}: this model with a context of {}{} needs at least {} ({} bytes: KV cache {}, "
            "activations and staging {}, small tensors {}{}{}{}); set {}a smaller context (-c){}, or {}",
            bytes_text(there ? plan_.capacity : std::min(plan_.capacity, request_.most.left_bytes)),
            there ? "" : ", and " + limit_text(request_.most), model_.context, for_each_text(model_),
            bytes_text(plan_.least), plan_.least, bytes_text(plan_.kv),
            bytes_text(plan_.least - fixed_ - bounce_.least - direct_.least), bytes_text(plan_.tensors),
            bounce_.least == 0 ? "" : ", bounce buffer " + bytes_text(bounce_.least),
            direct_.least == 0 ? "" : ", direct reads " + bytes_text(direct_.least),
            plan_.tables == 0 ? "" : ", tables of plugins " + bytes_text(plan_.tables),
            there ? "that much, " : "", model_.sequences == 1 ? "" : ", fewer sequences (-np)",
            there ? "--fit" : "--force")};
  }

  // The error names the largest table.
  Error tables_too_large() const {
    const TableRequest& largest = *std::ranges::max_element(tier_.tables, {}, &TableRequest::bytes);
    return {Code::no_space, largest.file,
            fmt::format("its tensors need {}{}, tiers.{}.capacity is {}; with them, this model with a "
                        "context of {}{} needs at least {} ({} bytes); set that capacity, or --fit",
                        bytes_text(largest.bytes),
                        largest.bytes == plan_.tables
                            ? ""
                            : fmt::format(" of {} for tables of plugins", bytes_text(plan_.tables)),
                        tier_.name, bytes_text(plan_.capacity), model_.context, for_each_text(model_),
                        bytes_text(plan_.least), plan_.least)};
  }

  const Manifest& manifest_;
  const MemoryRequest& request_;
  ModelOptions model_;
  const TierRequest& tier_;
  uint64_t largest_ = 0;  // minimum of staging: a neuron, or a run that is summed together
  Bounce bounce_;
  Bounce direct_;
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
  if (text == "auto") {
    capacity.kind = Capacity::Kind::automatic;
    return capacity;
  }
  if (!text.empty() && text.back() == '%') {
    double percent = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size() - 1, percent);
    if (status != std::errc() || end != text.data() + text.size() - 1 || !(percent > 0) || percent > 10000) {
      return Error{Code::invalid_argument, std::string(origin),
                   fmt::format("'{}' is not a share; expected a percentage such as 50%", text)};
    }
    capacity.kind = Capacity::Kind::share;
    capacity.share = percent / 100;
    return capacity;
  }
  TIERD_ASSIGN(capacity.bytes, parse_bytes(text, origin));
  capacity.kind = Capacity::Kind::bytes;
  return capacity;
}

Error too_much_memory(std::string_view tier, uint64_t taken, const MemoryLimit& most) {
  return {Code::no_space, fmt::format("tiers.{}.capacity", tier),
          fmt::format(
              "{} ({} bytes) is more than the {} ({} bytes) that {} leaves; set less, \"auto\", or --force",
              bytes_text(taken), taken, bytes_text(most.left_bytes), most.left_bytes, most.source)};
}

namespace {

// The tightest tier limits the rows of a chunk.
Result<MemoryPlan> divide_memory(const Manifest& manifest, const MemoryRequest& request) {
  MemoryPlan plan;
  plan.model = request.model;
  plan.most = request.most;
  std::vector<TierPlanner> planners;
  uint64_t given = 0, to_choose = 0;
  for (const TierRequest& tier : request.tiers) {
    const TierPlanner& planner = planners.emplace_back(manifest, request, tier);
    planner.automatic() ? ++to_choose : given += planner.wanted();
  }
  // Tiers with an automatic capacity share the memory that the given capacities leave.
  uint64_t left = request.most.left_bytes - std::min(request.most.left_bytes, given);
  uint64_t taken = 0;
  for (TierPlanner& planner : planners) {
    uint64_t capacity = planner.wanted();
    if (planner.automatic()) {
      capacity = std::min(capacity, left / to_choose--);
      left -= capacity;
    }
    TIERD_ASSIGN(const uint32_t rows, planner.take(capacity));
    plan.model.max_rows = std::min(plan.model.max_rows, rows);
    taken += planner.capacity();
    if (taken > request.most.left_bytes && !request.force)
      return too_much_memory(planner.name(), taken, request.most);
  }
  for (TierPlanner& planner : planners) plan.tiers.push_back(planner.divide(plan.model.max_rows));
  return plan;
}

}  // namespace

Result<MemoryPlan> plan_memory(const Manifest& manifest, MemoryRequest request) {
  for (ModelOptions& model = request.model;;) {
    auto plan = divide_memory(manifest, request);
    const bool may_be_halved = request.shortest_context != 0 && model.context / 2 >= request.shortest_context;
    if (plan.ok() || plan.code() != Code::no_space || !may_be_halved) return plan;
    model.context /= 2;
    model.max_rows = std::max(model.sequences, std::min(model.max_rows, model.context));
    model.logit_rows = std::min(model.logit_rows, model.max_rows);
  }
}

}  // namespace tierd
