#include "tools/tier-trace/timeline.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/tier-trace/messages.h"

namespace tierd {
namespace {

using nlohmann::json;

constexpr int kProcess = 1;
constexpr int kStepsRow = 1;
constexpr int kPassesRow = 2;
constexpr int kFirstEngineRow = 10;
constexpr int kRowsPerEngine = 1000;

double us(uint64_t ns) {
  return static_cast<double>(ns) * 1e-3;
}

class Timeline {
 public:
  Timeline(const TraceHeader& header, const StepRange& steps, std::FILE* out)
      : header_(header), steps_(steps), out_(out) {
    std::fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":", out_);
    std::fputs(json(header.facts).dump(-1, ' ', true, json::error_handler_t::replace).c_str(), out_);
    std::fputs(",\"traceEvents\":[\n", out_);
    put({{"ph", "M"}, {"pid", kProcess}, {"name", "process_name"}, {"args", {{"name", "tierd"}}}});
    name_row(kStepsRow, "steps");
    name_row(kPassesRow, "kernel: passes");
  }
  void finish() { std::fputs("\n]}\n", out_); }

  void add(const Event& event) {
    if (const auto* begins = event.as<PassBegins>()) {
      end_pass(event.ns);
      if (!step_) step_ = {begins->step, begins->rows, begins->bypass_caches, event.ns};
      pass_ = {*begins, event.ns};
    } else if (const auto* ends = event.as<StepEnds>()) {
      end_pass(event.ns);
      if (step_ && steps_.contains(ends->step)) {
        slice(kStepsRow, fmt::format("{} {}", step_->prefill ? "prefill" : "step", ends->step),
              step_->begin_ns, event.ns, {{"rows", step_->rows}});
      }
      step_.reset();
    } else if (const auto* posted = event.as<Posted>()) {
      if (posted->message.op == Op::read) reads_in_flight(+1, event.ns);
    }
    const auto served = messages_.take(event);
    if (!served) return;
    if (served->posted.op == Op::read) reads_in_flight(-1, event.ns);
    if (!served->withdrawn && steps_.contains(served->posted.step)) message(*served);
  }

 private:
  struct Step {
    uint32_t step;
    uint16_t rows;
    bool prefill;
    uint64_t begin_ns;
  };
  struct OpenPass {
    PassBegins begins;
    uint64_t begin_ns;
  };

  void put(const json& event) {
    if (!first_) std::fputs(",\n", out_);
    first_ = false;
    std::fputs(event.dump(-1, ' ', true, json::error_handler_t::replace).c_str(), out_);
  }
  void name_row(int row, const std::string& name) {
    put({{"ph", "M"}, {"pid", kProcess}, {"tid", row}, {"name", "thread_name"}, {"args", {{"name", name}}}});
    put({{"ph", "M"},
         {"pid", kProcess},
         {"tid", row},
         {"name", "thread_sort_index"},
         {"args", {{"sort_index", row}}}});
  }
  void slice(int row, const std::string& name, uint64_t begin_ns, uint64_t end_ns, json args) {
    put({{"ph", "X"},
         {"pid", kProcess},
         {"tid", row},
         {"name", name},
         {"ts", us(begin_ns)},
         {"dur", us(end_ns - std::min(begin_ns, end_ns))},
         {"args", std::move(args)}});
  }
  std::string site_name(SiteId site) const {
    return site < header_.sites.size() ? header_.sites[site].name : fmt::format("site {}", site);
  }
  void end_pass(uint64_t ns) {
    if (pass_ && steps_.contains(pass_->begins.step)) {
      slice(kPassesRow, site_name(pass_->begins.site), pass_->begin_ns, ns,
            {{"step", pass_->begins.step}, {"rows", pass_->begins.rows}});
    }
    pass_.reset();
  }
  void reads_in_flight(int change, uint64_t ns) {
    reads_ += change;
    if (!step_ || !steps_.contains(step_->step)) return;
    put({{"ph", "C"},
         {"pid", kProcess},
         {"name", "reads posted"},
         {"ts", us(ns)},
         {"args", {{"reads", reads_}}}});
  }
  // Messages of one engine that overlap lie side by side.
  void message(const Served& served) {
    const uint32_t engine = uint32_t{served.posted.agent} << 2 | static_cast<uint32_t>(served.posted.engine);
    std::vector<uint64_t>& lanes = lanes_[engine];
    const uint64_t start = served.done.start_ns, end = std::max(start, served.done.done_ns);
    size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > start) ++lane;
    const int row = kFirstEngineRow + static_cast<int>(engine) * kRowsPerEngine + static_cast<int>(lane);
    if (lane == lanes.size()) {
      lanes.push_back(0);
      const std::string name = engine_name(header_, served.posted);
      name_row(row, lane == 0 ? name : fmt::format("{} ({})", name, lane + 1));
    }
    lanes[lane] = end;
    constexpr std::array kPriorityNames = {"demand", "prefetch", "migration"};
    json args = {{"step", served.posted.step},
                 {"units", served.units},
                 {"bytes", served.done.bytes},
                 {"priority", kPriorityNames[static_cast<size_t>(served.posted.priority)]},
                 {"queued_us", us(start - std::min(start, served.posted_ns))}};
    if (served.done.status != DoneStatus::ok) args["status"] = status_name(served.done.status);
    slice(row, site_name(served.posted.site), start, end, std::move(args));
  }

  const TraceHeader& header_;
  StepRange steps_;
  std::FILE* out_;
  bool first_ = true;
  Messages messages_;
  std::optional<Step> step_;
  std::optional<OpenPass> pass_;
  std::map<uint32_t, std::vector<uint64_t>> lanes_;  // by engine: the end of the last message in each
  int64_t reads_ = 0;
};

}  // namespace

Status write_timeline(TraceReader& trace, const StepRange& steps, std::FILE* out, const std::string& name) {
  Timeline timeline(trace.header(), steps, out);
  for (; const Event* event = trace.peek(); trace.next()) timeline.add(*event);
  TIERD_TRY(trace.status());
  timeline.finish();
  if (std::fflush(out) != 0 || std::ferror(out) != 0) {
    return Error{Code::io_error, name, fmt::format("cannot be written: {}", std::strerror(errno))};
  }
  return {};
}

}  // namespace tierd
