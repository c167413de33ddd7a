// This is what a running Runtime does and tells. It loads what stays resident, moves the budget and replaces
// strategies between steps, and counts.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/base/align.h"
#include "core/base/progress.h"
#include "core/base/units.h"
#include "core/run/runtime.h"
#include "core/run/runtime_names.h"

namespace tierd {
namespace {

// The blocks that hold an extent, joined with those of the one before.
void add_blocks(std::vector<FileRange>& ranges, const Extent& extent) {
  const uint64_t begin = extent.offset / kDirectIoAlignment * kDirectIoAlignment;
  const uint64_t end = align_up(extent.offset + extent.bytes, kDirectIoAlignment);
  if (!ranges.empty()) {
    FileRange& last = ranges.back();
    if (begin >= last.offset && begin <= last.offset + last.bytes) {
      last.bytes = std::max(last.bytes, end - last.offset);
      return;
    }
  }
  ranges.push_back({begin, end - begin});
}

}  // namespace

Status Runtime::load(const std::function<void(double)>& told) {
  const uint64_t bytes = resident_bytes();
  uint64_t done = 0;
  Progress progress("loading", bytes, quiet_ || bytes < (64u << 20));
  TIERD_TRY(engine_->load([&](uint64_t landed) {
    progress.advance(landed);
    done += landed;
    if (told) told(std::min(1.0, static_cast<double>(done) / static_cast<double>(bytes)));
  }));
  progress.finish();
  return {};
}

uint64_t Runtime::resident_bytes() const {
  uint64_t bytes = 0;
  for (const std::vector<uint32_t>& slots : slots_) {
    for (EditionId e = 0; e < slots.size(); ++e)
      bytes += uint64_t{slots[e]} * plan_.model.sites.editions[e].slot_bytes;
  }
  return bytes;
}

std::vector<std::span<const std::byte>> Runtime::arena() const {
  const std::vector<Edition>& editions = plan_.model.sites.editions;
  std::vector<std::span<const std::byte>> pieces;
  for (EditionId e = 0; e < editions.size(); ++e) {
    const uint64_t bytes = uint64_t{slots_.front()[e]} * editions[e].slot_bytes;
    if (bytes != 0) pieces.push_back(pools_.memory(kDramMemory).subspan(arena_offset_[e], bytes));
  }
  return pieces;
}

Result<uint64_t> Runtime::capacity_bytes(std::string_view capacity, std::string_view origin) const {
  TIERD_ASSIGN(const Capacity asked, parse_capacity(capacity, origin));
  switch (asked.kind) {
    case Capacity::Kind::all:
      return least_capacity() + plan_.memory.whole;
    case Capacity::Kind::share:
      return static_cast<uint64_t>(asked.share * static_cast<double>(plan_.store.manifest().tensor_bytes));
    case Capacity::Kind::bytes:
      break;
  }
  return asked.bytes;
}

Status Runtime::set_capacity(std::string_view capacity, bool fit) {
  BudgetChange change{engine_->steps(), budget_.capacity(), 0, 0, false};
  TIERD_ASSIGN(change.to, capacity_bytes(capacity, kCapacity));
  TIERD_TRY(scheduler_->resizable());
  const uint64_t resident = resident_bytes();
  const uint64_t beside = least_capacity();
  if (change.to < beside) {
    if (!fit) {
      return Error{Code::no_space, kCapacity,
                   fmt::format("{} is too little now: {} ({} bytes) are in use beside the weights that stay; "
                               "give that much, or --fit",
                               format_bytes(static_cast<double>(change.to)),
                               format_bytes(static_cast<double>(beside)), beside)};
    }
    change.to = beside;
    change.raised_to_least = true;
  }
  const uint64_t arena = std::min(plan_.memory.whole, change.to - beside);
  if (arena > most_arena_) {
    return Error{Code::unsupported, kCapacity,
                 fmt::format("there are addresses for {} of weights, {} do not fit; start anew with more",
                             format_bytes(static_cast<double>(most_arena_)),
                             format_bytes(static_cast<double>(arena)))};
  }
  TIERD_TRY(engine_->drain());
  TIERD_TRY(engine_->resize({change.to, arena}, strategies_->parts(arena)));
  for (uint32_t unit = 0; unit < slots_.size(); ++unit) {
    for (EditionId e = 0; e < slots_[unit].size(); ++e) slots_[unit][e] = residencies_[unit].max_slots(e);
  }
  // By now the memory of a smaller arena was given back; that of a larger one is used by `load`.
  change.resident = resident_bytes();
  budget_.release(kResident, resident);
  budget_.set_capacity(change.to);
  TIERD_TRY(budget_.reserve(kResident, change.resident));
  plan_.memory.capacity = change.to;
  plan_.memory.arena = arena;
  plan_.memory.raised_to_least = change.raised_to_least;
  budget_changes_.push_back(change);
  return engine_->load({});
}

Status Runtime::swap(std::string_view kind, const StrategyConfig& strategy) {
  TIERD_ASSIGN(ChosenStrategy chosen, choose_strategy(plugin_path(plan_.config), kind, strategy));
  TIERD_TRY(engine_->drain());
  return replace(std::move(chosen), strategy);
}

Status Runtime::replace(ChosenStrategy chosen, const StrategyConfig& strategy) {
  const std::string kind = chosen.choice.plugin->kind;
  const PluginTensors* tables = strategies_->instance(kind).choice().tensors.get();
  const uint64_t leaving = tables != nullptr ? tables->bytes : 0;
  const uint64_t coming = chosen.table_bytes();
  // Both are there for a moment.
  if (const Status room = budget_.reserve(kPluginTables, coming); !room.ok()) {
    return Error{room.code(), chosen.tensors->path(), room.error().line()};
  }
  const auto swap = [&]() -> Status {
    TIERD_ASSIGN(StrategyChoice choice, read_tensors(std::move(chosen)));
    return strategies_->swap(std::move(choice), plan_.memory.arena);
  };
  const Status swapped = swap();
  budget_.release(kPluginTables, swapped.ok() ? leaving : coming);
  if (swapped.ok() && recorder_ != nullptr) recorder_->swapped(kind, strategy);
  return swapped;
}

Status Runtime::recover() {
  const auto heal = [&](const auto& strategy, const StrategyChoice& fallback,
                        const StrategyConfig& config) -> Status {
    if (!strategy.quarantined()) return {};
    if (fallback.plugin == nullptr) {
      Error error = strategy.error();
      error.detail =
          fmt::format("is quarantined ({}); '{}.fallback' names no other", error.detail, strategy.kind);
      return error;
    }
    spdlog::warn("{}; {} takes its place", strategy.error().line(), fallback.plugin->name);
    return replace({fallback, {}}, StrategyConfig{config.fallback});
  };
  const Strategies& s = strategies_->strategies();
  const Config& c = plan_.config;
  TIERD_TRY(heal(s.predictor, plan_.fallbacks.predictor, c.predictor));
  TIERD_TRY(heal(s.quantizer, plan_.fallbacks.quantizer, c.quantizer));
  for (const auto& cache : s.caches) TIERD_TRY(heal(cache, plan_.fallbacks.cache, c.cache));
  return heal(s.balancer, plan_.fallbacks.balancer, c.balancer);
}

Status Runtime::end_recording() {
  if (timeline_ != nullptr) TIERD_TRY(timeline_->finish());
  return recorder_ != nullptr ? recorder_->finish() : Status();
}

ComputeCounts Runtime::compute_counts() const {
  ComputeCounts all;
  for (const MadeAgent& unit : dram_) {
    const ComputeCounts of = counts(unit).compute;
    all.shared_work += of.shared_work;
    all.threads_woken += of.threads_woken;
    all.activation_error = std::max(all.activation_error, of.activation_error);
  }
  return all;
}

uint64_t Runtime::agent_wake_ups() const {
  uint64_t all = flash_thread_ ? flash_thread_->wake_ups() : 0;
  for (const auto& thread : dram_threads_) all += thread->wake_ups();
  return all;
}

Result<Runtime::Traffic> Runtime::planned_traffic() const {
  TIERD_ASSIGN(const std::vector<std::vector<uint32_t>> kept, strategies_->wanted());
  Traffic traffic;
  for (SiteId s = 0; s < plan_.model.sites.size(); ++s) {
    const Site& site = plan_.model.sites[s];
    if (site.given()) continue;
    // How many experts a token uses is known, which ones is not.
    const ModelConfig& model = plan_.store.manifest().config;
    const uint64_t used = site.chosen() ? model.experts_per_token : 1;
    const uint64_t of = site.chosen() ? model.n_experts : 1;
    const std::vector<uint32_t>& here = kept[plan_.model.sites.best(s)];
    const Edition& edition = plan_.model.sites.best_of(s);
    for (uint32_t i = 0; i < site.n; ++i) {
      const bool resident = std::binary_search(here.begin(), here.end(), i);
      (resident ? traffic.resident_bytes : traffic.streamed_bytes) += edition.bytes[i] * used / of;
    }
    const Manifest& manifest = plan_.store.manifest();
    const StoredSite& stored = manifest.sites[s];
    for (uint32_t e = 0; e < site.n * stored.pieces; ++e) {
      if (std::binary_search(here.begin(), here.end(), e % site.n)) continue;
      add_blocks(traffic.streamed, manifest.extents[stored.extent_of(e % site.n, e / site.n)]);
    }
  }
  return traffic;
}

}  // namespace tierd
