#include "core/device/unit_cost.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/align.h"
#include "core/message/joint_run.h"

namespace tierd {
namespace {

// Norms, additions and the like, of one thread.
constexpr double kFloatsPerSecond = 4e9;

// What the disk reads at once of what lies side by side.
constexpr uint64_t kMostRead = 1u << 20;

double values_of(Encoding encoding, double bytes) {
  return bytes / block_bytes(encoding) * block_values(encoding);
}

}  // namespace

Result<UnitCost> UnitCost::create(const ProcessorDescription& processor, ComputePlan plan,
                                  std::optional<LinkDescription> link) {
  std::vector<KernelRate> rates;
  for (const Encodings& encodings : plan.editions) {
    const Encoding encoding = encodings.front();
    const bool int8 = plan.int8_activations && is_quantized(encoding);
    const std::optional<KernelRate> rate = processor.rate(encoding, int8);
    if (!rate) {
      return Error{Code::not_found, "compute.rates",
                   fmt::format("no rate of {} x {} is described", name(encoding), int8 ? "int8" : "f32")};
    }
    rates.push_back(*rate);
  }
  return UnitCost(processor.memory_rate, std::move(plan), std::move(rates), std::move(link));
}

uint64_t UnitCost::ns(const Message& message, const Payload& payload) const {
  double seconds = 0;
  if (message.op == Op::move) {
    seconds = move_seconds(message, payload.units.size());
  } else if (message.op == Op::read && disk_ != nullptr) {
    seconds = read_seconds(payload.units);
  } else if (message.op == Op::run) {
    each_site(message, payload,
              [&](const Message& one, const Payload& its, size_t) { seconds += run_seconds(one, its); });
  }
  return static_cast<uint64_t>(seconds * 1e9);
}

double UnitCost::run_seconds(const Message& message, const Payload& payload) const {
  double seconds = 0;
  const SiteWork& site = plan_.sites[message.site];
  if ((message.flags & kRunBefore) != 0) {
    for (const Step& step : site.before) seconds += step_seconds(step, payload.rows);
  }
  for (const Take& take : payload.takes)
    seconds += static_cast<double>(message.rows) * take.columns / kFloatsPerSecond;
  if (!payload.units.empty()) seconds += neurons_seconds(message, payload.units);
  if ((message.flags & kRunAfter) != 0) {
    for (const Step& step : site.after) seconds += step_seconds(step, payload.rows);
  }
  return seconds;
}

// What is encoded anew crosses a link as what it becomes. How long that takes the processor no description
// says: it goes on while the link carries what was encoded before, and is left out.
double UnitCost::move_seconds(const Message& message, size_t units) const {
  const MadeNeurons* const recoded =
      (message.flags & kRecode) != 0 ? plan_.recoded_of(message.edition) : nullptr;
  const double bytes =
      static_cast<double>(units) *
      static_cast<double>(recoded == nullptr ? message.unit_bytes
                                             : neuron_bytes(plan_.sites[recoded->site].cut,
                                                            plan_.editions[message.edition], 0));
  if (link_ && message.from != message.memory)
    return static_cast<double>(link_->latency_ns) * 1e-9 + bytes / link_->rate;
  return 2 * bytes / memory_rate_;  // read and written
}

// What was read crosses the link while the next is read: the slower of the two counts. The units of a message
// follow each other in the file, and those that touch are read together.
double UnitCost::read_seconds(std::span<const Unit> units) const {
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
  const double rate = link_ ? link_->rate : memory_rate_ / 2;
  const double latency = link_ ? static_cast<double>(link_->latency_ns) * 1e-9 : 0;
  return latency + std::max(reading, static_cast<double>(bytes) / rate);
}

// One token is bound by memory, many by multiplications.
double UnitCost::neurons_seconds(const Message& message, std::span<const Unit> units) const {
  const SiteWork& site = plan_.sites[message.site];
  const Encodings& encodings = plan_.editions[message.edition];
  if (site.gather) return static_cast<double>(message.rows) * inputs(site.cut) / kFloatsPerSecond;
  double bytes = 0;
  for (const Unit& unit : units) bytes += static_cast<double>(neuron_bytes(site.cut, encodings, unit.unit));
  const KernelRate& rate = rates_[message.edition];
  return std::max(bytes / rate.gemv, values_of(encodings.front(), bytes) * message.rows / rate.gemm);
}

double UnitCost::step_seconds(const Step& step, std::span<const RowInfo> rows) const {
  const AttentionShape& shape = plan_.attention;
  double seconds = static_cast<double>(rows.size()) * step.width / kFloatsPerSecond;
  if (step.kind == StepKind::attend) {
    const double element = plan_.kv == KvEncoding::f16 ? 2 : 4;
    for (const RowInfo& row : rows) {
      const double positions = std::min(row.position + 1, shape.window != 0 ? shape.window : UINT32_MAX);
      seconds += positions * 2 * shape.kv_dim() * element / memory_rate_;
    }
  }
  return seconds;
}

}  // namespace tierd
