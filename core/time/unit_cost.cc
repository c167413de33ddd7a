#include "core/time/unit_cost.h"

#include <algorithm>

#include "core/agent/joint_run.h"
#include "core/base/align.h"

namespace tierd {
namespace {

// The most contiguous bytes that the disk reads at once.
constexpr uint64_t kMostRead = 1u << 20;

}  // namespace

Result<UnitCost> UnitCost::create(const ProcessorDescription& processor, ComputePlan plan,
                                  std::optional<LinkDescription> link) {
  TIERD_ASSIGN(std::unique_ptr<UnitProcessor> computes, unit_processor(processor, plan));
  UnitCost cost(std::move(computes), std::move(plan), std::move(link));
  cost.wait_ns_ = processor.after_wait_ns;
  return cost;
}

uint64_t UnitCost::ns(const Message& message, const Payload& payload, bool after_wait) const {
  double seconds = 0;
  if (message.op == Op::move) {
    seconds = move_seconds(message, payload);
  } else if (message.op == Op::read && disk_ != nullptr) {
    seconds = read_seconds(message, payload.units);
  } else if (message.op == Op::run) {
    seconds = processor_->launch();
    each_site(message, payload, [&](const Message& one, const Payload& its, size_t) {
      seconds += run_seconds(one, its, after_wait);
    });
  }
  return static_cast<uint64_t>(seconds * 1e9);
}

double UnitCost::run_seconds(const Message& message, const Payload& payload, bool after_wait) const {
  double seconds = 0;
  const SiteWork& site = plan_.sites[message.site];
  if ((message.flags & kRunBefore) != 0) {
    for (const Step& step : site.before) seconds += step_seconds(step, payload.rows);
  }
  for (const Take& take : payload.takes)
    seconds += take_seconds(static_cast<double>(message.rows) * take.columns);
  if (!payload.units.empty()) seconds += neurons_seconds(message, payload.units, payload.masks, after_wait);
  if ((message.flags & kRunAfter) != 0) {
    for (const Step& step : site.after) seconds += step_seconds(step, payload.rows);
  }
  return seconds;
}

// Activations cross a link to a device; the taking agent waits for them, the giving one does not.
double UnitCost::take_seconds(double floats) const {
  if (!takes_over_link_) return processor_->floats(floats);
  return static_cast<double>(link_->latency_ns) * 1e-9 + floats * sizeof(float) / link_->rate;
}

bool UnitCost::takes_turns_with_disk(const Message& message) const {
  if (message.op != Op::move || message.from == message.memory) return false;
  const std::optional<LinkDescription>& link = link_from(message.from);
  return link && !link->beside_disk;
}

double UnitCost::bytes_as(const Message& message, const MadeNeurons& made, size_t units) const {
  return static_cast<double>(units) *
         static_cast<double>(neuron_bytes(plan_.sites[made.site].cut, plan_.editions[message.edition], 0));
}

double UnitCost::expand_seconds(const Message& message, size_t units) const {
  if ((message.flags & kRecode) == 0) return 0;
  const MadeNeurons* const expanded = plan_.expanded_of(message.edition);
  return expanded != nullptr ? processor_->expand(bytes_as(message, *expanded, units)) : 0;
}

// Recoded neurons cross a link in their new encoding. No description has the processor's time for encoding,
// which overlaps with the link's transfer, so it is ignored. Bitmaps cross as they are and are expanded on
// arrival.
double UnitCost::move_seconds(const Message& message, const Payload& payload) const {
  const MadeNeurons* const recoded =
      (message.flags & kRecode) != 0 ? plan_.recoded_of(message.edition) : nullptr;
  const size_t units = payload.units.size();
  const double bytes = recoded != nullptr ? bytes_as(message, *recoded, units)
                                          : static_cast<double>(payload.moved_bytes(message));
  const double expanding = expand_seconds(message, units);
  const std::optional<LinkDescription>& link = link_from(message.from);
  if (link && message.from != message.memory)
    return static_cast<double>(link->latency_ns) * 1e-9 + bytes / link->rate + expanding;
  return processor_->copy(bytes) + expanding;
}

// Data crosses the link while the next read is served, so the slower of the two counts. The units of a
// message are sorted by file offset, and adjacent ones are read together.
double UnitCost::read_seconds(const Message& message, std::span<const Unit> units) const {
  double reading = 0;
  uint64_t bytes = 0, begin = 0, end = 0;
  const auto read = [&] {
    if (begin != end) reading += disk_->reads.seconds_each(static_cast<double>(end - begin));
  };
  const auto add = [&](const ExtentRef& extent) {
    bytes += extent.bytes;
    const uint64_t first = extent.offset / kDirectIoAlignment * kDirectIoAlignment;
    const uint64_t last = align_up(extent.offset + extent.bytes, kDirectIoAlignment);
    if (first < begin || first > end || last - begin > kMostRead) {
      read();
      begin = first;
      end = last;
    }
    end = std::max(end, last);
  };
  for (const Unit& unit : units) {
    const auto of = std::ranges::find_if(reads_.pieces,
                                         [&](const ExtentPieces& pieces) { return pieces.begin(unit.unit); });
    const bool whole = of == reads_.pieces.end();
    for (uint32_t piece = 0; piece < (whole ? 1 : of->pieces); ++piece)
      add(reads_.extents[unit.unit + (whole ? 0 : piece * of->n)]);
  }
  read();
  reading = std::max(reading, static_cast<double>(disk_->latency_ns) * 1e-9);
  const std::optional<LinkDescription>& link = link_from(message.from);
  const auto read_bytes = static_cast<double>(bytes);
  const double latency = link ? static_cast<double>(link->latency_ns) * 1e-9 : 0;
  return latency + std::max(reading, link ? read_bytes / link->rate : processor_->copy(read_bytes)) +
         expand_seconds(message, units.size());
}

double UnitCost::neurons_seconds(const Message& message, std::span<const Unit> units,
                                 std::span<const uint64_t> masks, bool after_wait) const {
  const SiteWork& site = plan_.sites[message.site];
  if (site.gather) return processor_->floats(static_cast<double>(message.rows) * inputs(site.cut));
  double seconds = processor_->neurons({.site = site,
                                        .encodings = plan_.editions[message.edition],
                                        .edition = message.edition,
                                        .units = units,
                                        .rows = message.rows,
                                        .masks = masks,
                                        .after_wait = after_wait});
  // Bitmaps that are multiplied directly are expanded on the way to the multipliers.
  if (plan_.compressed_of(message.edition) != nullptr) {
    for (const Unit& unit : units)
      seconds += processor_->expand(
          static_cast<double>(neuron_bytes(site.cut, plan_.editions[message.edition], unit.unit)));
  }
  return seconds;
}

double UnitCost::step_seconds(const Step& step, std::span<const RowInfo> rows) const {
  const AttentionShape& shape = plan_.attention;
  double seconds = processor_->floats(static_cast<double>(rows.size()) * step.width);
  if (step.kind == StepKind::attend) {
    const double element = plan_.kv == KvEncoding::f16 ? 2 : 4;
    for (const RowInfo& row : rows) {
      const double positions = std::min(row.position + 1, step.window != 0 ? step.window : UINT32_MAX);
      seconds += processor_->attention({.kv_bytes = positions * 2 * shape.kv_dim() * element,
                                        .multiply_adds = positions * 2 * shape.n_heads * shape.head_dim,
                                        .scores = positions * shape.n_heads});
    }
  }
  return seconds;
}

}  // namespace tierd
