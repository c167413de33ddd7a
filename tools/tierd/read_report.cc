#include "tools/tierd/read_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "core/base/units.h"
#include "core/watch/timeline/pipeline.h"
#include "tools/tierd/report.h"
#include "tools/tierd/report_numbers.h"
#include "tools/tierd/trend.h"

namespace tierd {
namespace {

using nlohmann::json;

}  // namespace

json flash_json(const Runtime& runtime, const ReadCounts& flash) {
  json sizes = json::object();  // "16384": reads of 16 KiB and more, less than the next size
  for (size_t i = 0; i < kReadSizes; ++i) {
    if (flash.reads_of_size[i] != 0) sizes[std::to_string(kLeastReadSize << i)] = flash.reads_of_size[i];
  }
  return {{"bytes", flash.bytes},
          {"extents", flash.extents},
          {"verified_bytes", flash.verified_bytes},
          {"asked_bytes", flash.asked_bytes},
          {"read_bytes", flash.read_bytes},
          {"wasted_bytes", flash.wasted_bytes},
          {"reads", flash.reads},
          {"reads_of_size", sizes},
          {"joined", flash.joined},
          {"short_reads", flash.short_reads},
          {"retries", flash.retries},
          {"checksum_ms", static_cast<double>(flash.checksum_ns) * kMs},
          {"busy_ms", static_cast<double>(flash.in_flight_ns) * kMs},
          {"busy_bytes_per_second", flash.in_flight_ns == 0 ? 0.0
                                                            : static_cast<double>(flash.read_bytes) * 1e9 /
                                                                  static_cast<double>(flash.in_flight_ns)},
          {"gap_bytes", runtime.reading().gap_bytes},
          {"gap_from", runtime.reading().gap_from},
          {"bounced", runtime.reading().bounced},
          {"bounced_from", runtime.reading().bounced_from}};
}

std::string flash_text(const json& flash) {
  const auto reads = flash["reads"].get<uint64_t>();
  const auto read_bytes = flash["read_bytes"].get<double>();
  const double wasted = read_bytes > 0 ? 100 * flash["wasted_bytes"].get<double>() / read_bytes : 0;
  return fmt::format("{} reads of {} for {} extents, {:.2g} % in vain; {} while busy", reads,
                     format_bytes(per(read_bytes, reads)), flash["extents"].get<uint64_t>(), wasted,
                     format_rate(flash["busy_bytes_per_second"].get<double>()));
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

void add_reads(json& decode, const ReadCounts& before, const ReadCounts& after) {
  const auto steps = decode["steps"].get<uint64_t>();
  const auto since = [&](auto ReadCounts::*field) {
    return static_cast<double>(after.*field - before.*field);
  };
  const double busy_ns = since(&ReadCounts::in_flight_ns);
  const double bytes = since(&ReadCounts::read_bytes);
  decode["io_ms"] = per(busy_ns * kMs, steps);
  decode["checksum_ms"] = per(since(&ReadCounts::checksum_ns) * kMs, steps);
  decode["copy_ms"] = per(since(&ReadCounts::copy_ns) * kMs, steps);
  decode["expand_ms"] = per(since(&ReadCounts::expand_ns) * kMs, steps);
  decode["reads"] = per(since(&ReadCounts::reads), steps);
  decode["read_bytes"] = per(bytes, steps);
  decode["wasted_bytes"] = per(since(&ReadCounts::wasted_bytes), steps);
  decode["busy_bytes_per_second"] = busy_ns == 0 ? 0.0 : bytes * 1e9 / busy_ns;
}

json trend_json(const std::vector<uint64_t>& read_bytes) {
  const size_t skipped = std::min<size_t>(kWarmUpSteps, read_bytes.size());
  const Trend trend = trend_of(std::span(read_bytes).subspan(skipped));
  return {{"skipped_steps", skipped},
          {"steps", read_bytes.size() - skipped},
          {"mean_bytes", trend.mean},
          {"bytes_per_step", trend.slope},
          {"error", trend.error}};
}

std::string trend_text(const json& trend) {
  const double slope = trend["bytes_per_step"].get<double>();
  return fmt::format("{} a step after the first {}; {}{} from step to step, give or take {}",
                     size_text(trend["mean_bytes"]), trend["skipped_steps"].get<uint64_t>(),
                     slope < 0 ? "-" : "+", format_bytes(std::abs(slope)), size_text(trend["error"]));
}

json pipeline_json(const Timeline& timeline) {
  const PipelineTimes times = pipeline_times(timeline);
  const auto ms = [&](uint64_t ns) { return per(static_cast<double>(ns) * kMs, times.steps); };
  const auto each = [&](uint64_t count) { return per(static_cast<double>(count), times.steps); };
  return {{"slices", timeline.size()},
          {"forgotten", timeline.dropped()},
          {"steps", times.steps},
          {"step_ms", ms(times.wall_ns)},
          {"compute_ms", ms(times.compute_ns)},
          {"predictor_ms", ms(times.predictor_ns)},
          {"busy_ms", ms(times.busy_ns)},
          {"flash_ms", ms(times.flash_ns)},
          {"demand_ms", ms(times.demand_ns)},
          {"preload_ms", ms(times.preload_ns)},
          {"overlap_ms", ms(times.overlap_ns)},
          {"hidden_ms", ms(times.hidden_ns)},
          {"hideable_ms", ms(times.hideable_ns)},
          {"hidden_share", times.hidden_share()},
          {"hidden_of_hideable", times.hidden_of_hideable()},
          {"copy_ms", ms(times.copied_ns)},
          {"copy_overlap_ms", ms(times.copied_beside_ns)},
          {"copied_bytes", each(times.copied_bytes)},
          {"wait_ms", ms(times.waited_ns)},
          {"wait_on_demand_ms", ms(times.waited_on_demand_ns)},
          {"demand_bytes", each(times.demand_bytes)},
          {"demand_reads", each(times.demand_reads)},
          {"preload_bytes", each(times.preload_bytes)},
          {"preload_reads", each(times.preload_reads)}};
}

std::string pipeline_text(const json& p) {
  const auto number = [&](const char* key) { return p[key].get<double>(); };
  if (p["steps"].get<uint64_t>() == 0) return "no decode step was recorded whole";
  std::string text = fmt::format(
      "flash busy {:.3g} ms a step (preload {:.3g}, demand {:.3g}), compute {:.3g}, predictor {:.3g}; "
      "reading "
      "beside computing {:.3g}; waiting for demands {:.3g}",
      number("flash_ms"), number("preload_ms"), number("demand_ms"), number("compute_ms"),
      number("predictor_ms"), number("overlap_ms"), number("wait_on_demand_ms"));
  if (number("preload_ms") > 0) {
    text += fmt::format("; {:.3g} % of preloading hidden, {:.3g} % of what computing can hide",
                        100 * number("hidden_share"), 100 * number("hidden_of_hideable"));
  }
  if (number("copy_ms") > 0) {
    text += fmt::format("; copies between memories {:.3g} ms, {:.3g} of them beside computing",
                        number("copy_ms"), number("copy_overlap_ms"));
  }
  if (const auto forgotten = p["forgotten"].get<uint64_t>(); forgotten != 0) {
    text += fmt::format("; the last {} steps, {} slices before were forgotten", p["steps"].get<uint64_t>(),
                        forgotten);
  }
  return text;
}

}  // namespace tierd
