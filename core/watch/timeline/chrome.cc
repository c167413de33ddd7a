#include "core/watch/timeline/chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

namespace tierd {
namespace {

using nlohmann::json;

constexpr size_t kFlushBytes = size_t{1} << 20;

// The numbers of rows; viewers show them in this order.
enum FixedRow : uint32_t { kSteps = 1, kPasses, kPredictor, kWaits, kFirstAgentRow = 1000 };
constexpr uint32_t kRowsOfOneSort = 1000;  // overlapping slices of an agent are limited by its credits
constexpr uint32_t kSortsOfAgents = 5;     // reads of three priorities, copies, runs

// Returns a JSON string.
std::string escaped(const std::string& text) {
  return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

// Returns the sort of an agent's work; each sort has rows of its own.
uint32_t sort_of(const Slice& slice) {
  if (slice.is_read()) return static_cast<uint32_t>(slice.priority);
  return slice.op == Op::run ? 4 : 3;
}

class ChromeTrace {
 public:
  ChromeTrace(const TimelineNames& names, std::FILE* out) : names_(names), out_(out) {
    for (const Site& site : *names.sites) site_names_.push_back(escaped(site.name));
    lanes_.resize((names.agents.size() + 1) * kSortsOfAgents);
  }

  void begin(const Timeline& timeline) {
    json facts = names_.facts;
    facts.update({{"slices", timeline.size()}, {"slices forgotten", timeline.dropped()}});
    text_ += "{\"displayTimeUnit\":\"ms\",\"otherData\":" +
             facts.dump(-1, ' ', true, json::error_handler_t::replace) + ",\"traceEvents\":[\n";
    text_ += R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"tierd"}})";
    name_row(kSteps, "steps");
    name_row(kPasses, "kernel: passes");
    name_row(kPredictor, "kernel: predictor");
    name_row(kWaits, "kernel: waits");
  }
  void end() {
    text_ += "\n]}\n";
    flush();
  }

  void add(const Slice& slice) {
    switch (slice.kind) {
      case Slice::Kind::step:
        put(slice, kSteps, fmt::format("\"{} {}\"", slice.prefill ? "prefill" : "step", slice.step),
            fmt::format("\"rows\":{}", slice.rows));
        break;
      case Slice::Kind::pass:
        put(slice, kPasses, site_name(slice.site),
            fmt::format("\"step\":{},\"rows\":{}", slice.step, slice.rows));
        break;
      case Slice::Kind::predictor:
        put(slice, kPredictor, fmt::format("\"{}\"", slice.asked),
            fmt::format("\"step\":{},\"site\":{}", slice.step, site_name(slice.site)));
        break;
      case Slice::Kind::wait:
        put(slice, kWaits, slice.on_demand ? "\"demand\"" : "\"wait\"",
            fmt::format("\"step\":{},\"site\":{}", slice.step, site_name(slice.site)));
        break;
      case Slice::Kind::message:
        message(slice);
        break;
    }
  }

  // Appends the curve, after all slices.
  void bytes_in_flight(const std::vector<const Slice*>& slices) {
    struct Change {
      uint64_t ns;
      int64_t bytes;
      bool demand;
    };
    std::vector<Change> changes;
    for (const Slice* slice : slices) {
      if (!slice->is_read()) continue;
      const bool demand = slice->priority == Priority::demand;
      changes.push_back({slice->begin_ns, static_cast<int64_t>(slice->bytes), demand});
      changes.push_back({slice->end_ns, -static_cast<int64_t>(slice->bytes), demand});
    }
    std::stable_sort(changes.begin(), changes.end(),
                     [](const Change& a, const Change& b) { return a.ns < b.ns; });
    std::array<int64_t, 2> bytes{};
    for (size_t i = 0; i < changes.size(); ++i) {
      bytes[changes[i].demand ? 0 : 1] += changes[i].bytes;
      if (i + 1 < changes.size() && changes[i + 1].ns == changes[i].ns) continue;
      next();
      text_ += fmt::format(
          R"({{"ph":"C","pid":1,"name":"bytes in flight","ts":{:.3f},"args":{{"demand":{},"preload":{}}}}})",
          us(changes[i].ns), bytes[0], bytes[1]);
    }
  }

 private:
  void next() {
    if (text_.size() >= kFlushBytes) flush();
    text_ += ",\n";
  }
  void flush() {
    std::fwrite(text_.data(), 1, text_.size(), out_);
    text_.clear();
  }
  double us(uint64_t ns) const { return static_cast<double>(ns - std::min(ns, names_.start_ns)) * 1e-3; }
  std::string site_name(SiteId site) const {
    if (site == kNoSiteId) return "\"\"";
    return site < site_names_.size() ? site_names_[site] : fmt::format("\"site {}\"", site);
  }
  void name_row(uint32_t row, const std::string& name) {
    next();
    text_ += fmt::format(R"({{"ph":"M","pid":1,"tid":{},"name":"thread_name","args":{{"name":{}}}}})", row,
                         escaped(name));
    next();
    text_ += fmt::format(
        R"({{"ph":"M","pid":1,"tid":{0},"name":"thread_sort_index","args":{{"sort_index":{0}}}}})", row);
  }
  void put(const Slice& slice, uint32_t row, std::string_view name, std::string_view args) {
    next();
    text_ += fmt::format(R"({{"ph":"X","pid":1,"tid":{},"name":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
                         row, name, us(slice.begin_ns), us(slice.end_ns) - us(slice.begin_ns), args);
  }

  void message(const Slice& slice) {
    std::string name = site_name(slice.site);
    std::string args = fmt::format("\"step\":{},\"bytes\":{},\"queued_us\":{:.3f}", slice.step, slice.bytes,
                                   us(slice.begin_ns) - us(std::min(slice.begin_ns, slice.queued_ns)));
    switch (slice.op) {
      case Op::read:
        args += fmt::format(",\"extents\":{},\"reads\":{}", slice.units, slice.reads);
        if (slice.site < names_.sites->size())
          args += fmt::format(",\"layer_group\":{}", (*names_.sites)[slice.site].layer_group);
        if (slice.raised) args += ",\"waited_for\":true";
        break;
      case Op::run: {
        if (slice.units == 0) name = "\"dense: " + name.substr(1);
        if (slice.sites != 0) {
          name.insert(name.size() - 1, fmt::format(" and {} more", slice.sites - 1));
          args += fmt::format(",\"sites\":{}", slice.sites);
        }
        args += fmt::format(",\"rows\":{},\"neurons\":{}", slice.rows, slice.units);
        const bool before = (slice.flags & kRunBefore) != 0, after = (slice.flags & kRunAfter) != 0;
        if (before || after) {
          args += fmt::format(",\"dense\":\"{}{}{}\"", before ? "before" : "", before && after ? ", " : "",
                              after ? "after" : "");
        }
        break;
      }
      default:
        name = slice.op == Op::move ? "\"move\"" : "\"resize\"";
    }
    if (slice.status != DoneStatus::ok) args += fmt::format(",\"status\":\"{}\"", status_name(slice.status));
    put(slice, row_of(slice), name, args);
  }

  // Returns the first row of the slice's sort that is free when it begins. Slices are added in the order of
  // their beginnings.
  uint32_t row_of(const Slice& slice) {
    const uint32_t agent = slice.agent < names_.agents.size() + 1 ? slice.agent : 0;
    const uint32_t sort = agent * kSortsOfAgents + sort_of(slice);
    std::vector<uint64_t>& lanes = lanes_[sort];
    size_t lane = 0;
    while (lane < lanes.size() && lanes[lane] > slice.begin_ns) ++lane;
    const uint32_t row = kFirstAgentRow + sort * kRowsOfOneSort + static_cast<uint32_t>(lane);
    if (lane == lanes.size()) {
      lanes.push_back(0);
      const std::string name = agent_name(agent) + " " + sort_name(slice);
      name_row(row, lane == 0 ? name : fmt::format("{} ({})", name, lane + 1));
    }
    lanes[lane] = slice.end_ns;
    return row;
  }
  std::string agent_name(uint32_t agent) const {
    if (agent == 0) return "agent";
    const std::string& name = names_.agents[agent - 1];
    const auto same = std::count(names_.agents.begin(), names_.agents.end(), name);
    return same > 1 ? fmt::format("{} {}", name, agent) : name;
  }
  static std::string sort_name(const Slice& slice) {
    constexpr std::array kNames = {"demand", "preload", "migration", "copy", "compute"};
    return kNames[sort_of(slice)];
  }

  const TimelineNames& names_;
  std::FILE* out_;
  std::string text_;  // not yet written
  std::vector<std::string> site_names_;
  std::vector<std::vector<uint64_t>> lanes_;  // by agent and sort: the end of the last slice in each row
};

}  // namespace

Status write_chrome_trace(const Timeline& timeline, const TimelineNames& names, std::FILE* out,
                          const std::string& name) {
  const std::vector<const Slice*> slices = timeline.sorted();
  ChromeTrace trace(names, out);
  trace.begin(timeline);
  for (const Slice* slice : slices) trace.add(*slice);
  trace.bytes_in_flight(slices);
  trace.end();
  if (std::fflush(out) != 0 || std::ferror(out) != 0) {
    return Error{Code::io_error, name, fmt::format("cannot be written: {}", std::strerror(errno))};
  }
  return {};
}

}  // namespace tierd
