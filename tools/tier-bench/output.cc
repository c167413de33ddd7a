#include "tools/tier-bench/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/units.h"

namespace tierd {
namespace {

using nlohmann::json;

double number(const json& value) {
  return value.get<double>();
}

std::string bytes(const json& value) {
  return format_bytes(number(value));
}

// Three digits, without an exponent.
std::string figure(double value) {
  if (value == 0) return "0";
  return fmt::format("{:.{}f}", value, value < 0.995 ? 3 : (value < 99.5 ? 2 : 1));
}
std::string figure(const json& value) {
  return figure(number(value));
}

std::string range(const json& summary) {
  return fmt::format("{} – {}", figure(summary["least"]), figure(summary["most"]));
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& cell : cells) line += " " + cell + " |";
  return line + "\n";
}

// The first column is text, the others are figures.
std::string head(const std::vector<std::string>& cells) {
  std::string line = row(cells) + "|---|";
  for (size_t i = 1; i < cells.size(); ++i) line += "---:|";
  return line + "\n";
}

std::string rates_table(const json& tests) {
  std::string text = head(
      {"test", "tokens/s", "from – to", "limit", "of the limit", "flash", "memory", "of memory", "blocks"});
  for (const json& test : tests) {
    const json& limit = test["limit"];
    const json& flash = test["flash_bytes_per_second"]["median"];
    text +=
        row({test["test"].get<std::string>(), figure(test["tokens_per_second"]["median"]),
             range(test["tokens_per_second"]), limit.is_null() ? "" : figure(limit["tokens_per_second"]),
             limit.is_null() ? "" : figure(limit["ratio"]["median"]),
             number(flash) > 0 ? format_rate(number(flash)) : "",
             format_rate(number(test["memory_bytes_per_second"]["median"])),
             limit.is_null() ? "" : fmt::format("{:.0f} %", 100 * number(limit["share_of_memory_bandwidth"])),
             fmt::format("{}", test["blocks"].get<uint64_t>())});
  }
  return text;
}

std::string breakdown_table(const json& tests) {
  std::string text = head({"per token", "step ms", "compute", "stall", "predictor", "reading",
                           "of it checksums", "management", "I/O beside", "flash", "DRAM", "messages",
                           "hand-overs a layer", "kernel overhead"});
  for (const json& test : tests) {
    const json& t = test["per_token"];
    text += row({test["test"].get<std::string>(), figure(t["step_ms"]), figure(t["compute_ms"]),
                 figure(t["stall_ms"]), figure(t["predictor_ms"]), figure(t["reading_ms"]),
                 figure(t["checksum_ms"]), figure(t["management_ms"]), figure(t["io_ms"]),
                 bytes(t["flash_bytes"]), bytes(t["dram_bytes"]), figure(t["messages"]),
                 figure(t["handovers_per_layer"]),
                 fmt::format("{:.2f} %", number(t["kernel_overhead_percent"]))});
  }
  return text;
}

std::string peer_table(const json& peer) {
  return head({"test", "ours", "peer", "from – to", "ratio", "rounds"}) +
         row({peer["test"].get<std::string>(), figure(peer["ours_tokens_per_second"]),
              figure(peer["tokens_per_second"]["median"]), range(peer["tokens_per_second"]),
              figure(peer["ratio"]), fmt::format("{}", peer["rounds"].get<uint64_t>())}) +
         fmt::format("\nThe peer: `{}`; our memory beside it: {}.\n", peer["command"].get<std::string>(),
                     bytes(peer["our_bytes_beside_it"]));
}

std::string notes(const json& tests) {
  std::string text;
  for (const json& test : tests) {
    const auto name = test["test"].get<std::string>();
    if (const auto n = test["repeated"].get<uint64_t>(); n > 0)
      text +=
          fmt::format("- {}: {} rounds were repeated, the disk was more than 20 % off its median\n", name, n);
    if (const auto n = test["strays_kept"].get<uint64_t>(); n > 0)
      text +=
          fmt::format("- {}: in {} rounds that count the disk was more than 20 % off its median\n", name, n);
    const json& limit = test["limit"];
    if (!limit.is_null() && number(limit["flash_ms"]) > 0) {
      text += fmt::format("- {}: limit by flash {} ms ({}), by memory {} ms ({}){}\n", name,
                          figure(limit["flash_ms"]), bytes(limit["must_read_bytes"]),
                          figure(limit["memory_ms"]), bytes(limit["weight_bytes"]),
                          limit["terms_within_20_percent"].get<bool>() ? ", within 20 % of each other" : "");
    }
  }
  return text;
}

std::string run_lines(const json& run) {
  const auto text_of = [&](const char* key) { return run[key].get<std::string>(); };
  const json& shape = run["shape"];
  const json& budget = run["budget"];
  std::string text;
  text += fmt::format("- model {}: {}, {} layers of {} x {}, {}, {} of weights\n", text_of("model"),
                      shape["architecture"].get<std::string>(), shape["layers"].get<int>(),
                      shape["d_model"].get<int>(), shape["d_ff"].get<int>(),
                      shape["encoding"].get<std::string>(), bytes(run["tensor_bytes"]));
  std::string settings;
  for (const json& one : run["set"]) settings += " --set " + one.get<std::string>();
  text += fmt::format(
      "- configuration {}{}: predictor {}, quantizer {}, cache {}, balancer {}; activations {}, KV {}\n",
      text_of("config").empty() ? "(defaults)" : text_of("config"), settings, text_of("predictor"),
      text_of("quantizer"), text_of("cache"), text_of("balancer"), text_of("activations"), text_of("kv"));
  text += fmt::format("- {} threads, {}, context {}, prefill chunk {}, seed {}\n", run["threads"].get<int>(),
                      text_of("kernels"), run["context"].get<int>(), run["prefill_chunk"].get<int>(),
                      run["seed"].get<uint64_t>());
  text += fmt::format("- backend {}, clock {}; {}, {}\n", text_of("backend"), text_of("clock"),
                      text_of("device"), text_of("cache_state"));
  if (number(run["block_seconds"]) > 0 || number(run["warmup_seconds"]) > 0) {
    text += fmt::format("- blocks of at least {} s after {} s of warm-up\n", number(run["block_seconds"]),
                        number(run["warmup_seconds"]));
  }
  const json& memory = run["memory"];
  text += fmt::format(
      "- DRAM {} of {}{}; process at most {}", bytes(budget["peak_bytes"]), bytes(budget["capacity_bytes"]),
      budget["raised_to_least"].get<bool>() ? " (raised to the least)" : "", bytes(memory["peak_rss_bytes"]));
  if (const json& group = memory["group"]; !group.is_null()) {
    text += fmt::format("; memory cgroup at most {}, {}", bytes(group["peak_bytes"]),
                        group["limit_bytes"].is_null() ? "no limit" : "limit " + bytes(group["limit_bytes"]));
  }
  text +=
      fmt::format("\n- {} ({}, {} cores, {}), {}, commit {}\n", text_of("host"), text_of("cpu"),
                  run["cores"].get<int>(), bytes(run["memory_bytes"]), text_of("date"), text_of("commit"));
  return text;
}

std::string to_md(const json& report) {
  std::string text = rates_table(report["tests"]) + "\n" + breakdown_table(report["tests"]) + "\n";
  if (!report["peer"].is_null()) text += peer_table(report["peer"]) + "\n";
  return text + notes(report["tests"]) + run_lines(report["run"]);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string cell(const json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? quoted(value.get<std::string>()) : value.dump();
}

// What has one value in every test. Lists have no place in a line, nor have the parts of what is null.
void add_columns(const json& value, const std::string& path, std::vector<std::string>& names) {
  if (value.is_array()) return;
  if (!value.is_object()) {
    names.push_back(path);
    return;
  }
  for (const auto& [key, part] : value.items()) add_columns(part, path + "/" + key, names);
}

std::string to_csv(const json& report) {
  std::vector<json> lines;
  std::vector<std::string> names;
  for (const json& test : report["tests"]) {
    lines.push_back({{"run", report["run"]}, {"test", test}, {"peer", report["peer"]}});
    std::vector<std::string> more;
    add_columns(lines.back(), "", more);
    for (const std::string& name : more) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string text;
  for (const std::string& name : names) {
    std::string column = name.substr(1);
    std::replace(column.begin(), column.end(), '/', '.');
    text += (text.empty() ? "" : ",") + column;
  }
  text += "\n";
  for (const json& line : lines) {
    std::string cells;
    for (const std::string& name : names) {
      const json::json_pointer pointer(name);
      const json value = line.contains(pointer) ? line[pointer] : json();
      cells += (&name == &names.front() ? "" : ",") + (value.is_structured() ? "" : cell(value));
    }
    text += cells + "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const json& report, Format format) {
  switch (format) {
    case Format::json:
      return report.dump(2) + "\n";
    case Format::csv:
      return to_csv(report);
    case Format::md:
      break;
  }
  return to_md(report);
}

}  // namespace tierd
