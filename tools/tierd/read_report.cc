#include "tools/tierd/read_report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>

#include "tools/tierd/report.h"

namespace tierd {
namespace {

constexpr uint64_t kLeastTrendSteps = 32;  // fewer steps show no trend

// Returns "284 MB a step after the first 16, -12 kB (+-9 kB) from step to step".
std::string trend_text(const TrendFigures& trend) {
  const double slope = trend.bytes.slope;
  return fmt::format("{} a step after the first {}; {}{} from step to step, give or take {}",
                     size_text(trend.bytes.mean), trend.skipped_steps, slope < 0 ? "-" : "+",
                     format_bytes(std::abs(slope)), size_text(trend.bytes.error));
}

}  // namespace

std::map<std::string, uint64_t> ReadFigures::sizes() const {
  std::map<std::string, uint64_t> sizes;
  for (size_t i = 0; i < kReadSizes; ++i) {
    if (reads_of_size[i] != 0) sizes[std::to_string(kLeastReadSize << i)] = reads_of_size[i];
  }
  return sizes;
}

FlashFigures flash_figures(const Runtime& runtime, const ReadCounts& flash, uint64_t disk_bytes_before) {
  const ReadChoices& choices = runtime.reading();
  return {.reads = {flash},
          .gap_bytes = choices.gap_bytes,
          .gap_from = choices.gap_from,
          .bounced = choices.bounced,
          .bounced_from = choices.bounced_from,
          .system_read_bytes = system_read_bytes() - disk_bytes_before};
}

ReportLines flash_lines(const FlashFigures& flash, const TrendFigures& trend) {
  ReportLines lines;
  const ReadFigures& reads = flash.reads;
  if (reads.reads != 0) {
    const double wasted = per(100 * static_cast<double>(reads.wasted_bytes), reads.read_bytes);
    lines.emplace_back(
        "flash", fmt::format("{} reads of {} for {} extents, {:.2g} % in vain; {} while busy", reads.reads,
                             size_text(per(reads.read_bytes, reads.reads)), reads.extents, wasted,
                             format_rate(reads.busy_bytes_per_second())));
  }
  if (trend.steps >= kLeastTrendSteps && trend.bytes.mean > 0) lines.emplace_back("trend", trend_text(trend));
  if (flash.gap_bytes != 0) {
    lines.emplace_back(
        "gaps", fmt::format("up to {} are read through; {}", size_text(flash.gap_bytes), flash.gap_from));
  }
  if (flash.bounced) lines.emplace_back("landing", "through the bounce buffer; " + flash.bounced_from);
  return lines;
}

uint64_t system_read_bytes() {
  std::ifstream counts("/proc/self/io");
  for (std::string key; counts >> key;) {
    uint64_t bytes = 0;
    if (!(counts >> bytes)) break;
    if (key == "read_bytes:") return bytes;
  }
  return 0;
}

TrendFigures trend_figures(const std::vector<uint64_t>& read_bytes) {
  const size_t skipped = std::min<size_t>(kWarmUpSteps, read_bytes.size());
  return {skipped, read_bytes.size() - skipped, trend_of(std::span(read_bytes).subspan(skipped))};
}

PipelineFigures pipeline_figures(const Timeline& timeline) {
  return {timeline.size(), timeline.dropped(), pipeline_times(timeline)};
}

std::string pipeline_text(const PipelineFigures& p) {
  const PipelineTimes& times = p.times;
  if (times.steps == 0) return "no decode step was recorded whole";
  std::string text = fmt::format(
      "flash busy {:.3g} ms a step (preload {:.3g}, demand {:.3g}), compute {:.3g}, predictor {:.3g}; "
      "reading beside computing {:.3g}; waiting for demands {:.3g}",
      p.ms(times.flash_ns), p.ms(times.preload_ns), p.ms(times.demand_ns), p.ms(times.compute_ns),
      p.ms(times.predictor_ns), p.ms(times.overlap_ns), p.ms(times.waited_on_demand_ns));
  if (times.preload_ns > 0) {
    text += fmt::format("; {:.3g} % of preloading hidden, {:.3g} % of what computing can hide",
                        100 * times.hidden_share(), 100 * times.hidden_of_hideable());
  }
  if (times.copied_ns > 0) {
    text += fmt::format("; copies between memories {:.3g} ms, {:.3g} of them beside computing",
                        p.ms(times.copied_ns), p.ms(times.copied_beside_ns));
  }
  if (p.forgotten != 0)
    text += fmt::format("; the last {} steps, {} slices before were forgotten", times.steps, p.forgotten);
  return text;
}

}  // namespace tierd
