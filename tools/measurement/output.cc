#include "tools/measurement/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/units.h"
#include "core/watch/energy/energy_text.h"
#include "tools/measurement/md_table.h"

namespace tierd {
namespace {

using nlohmann::json;

double number(const json& value) {
  return value.get<double>();
}

std::string rates_table(const json& tests) {
  std::string text = table_head(
      {"test", "tokens/s", "from – to", "limit", "of the limit", "flash", "memory", "of memory", "blocks"});
  for (const json& test : tests) {
    const json& limit = test["limit"];
    const json& flash = test["flash_bytes_per_second"]["median"];
    text += table_row(
        {test["test"].get<std::string>(), figure(test["tokens_per_second"]["median"]),
         range_text(test["tokens_per_second"]), limit.is_null() ? "" : figure(limit["tokens_per_second"]),
         limit.is_null() ? "" : figure(limit["ratio"]["median"]),
         number(flash) > 0 ? format_rate(number(flash)) : "",
         format_rate(number(test["memory_bytes_per_second"]["median"])),
         limit.is_null() ? "" : fmt::format("{:.0f} %", 100 * number(limit["share_of_memory_bandwidth"])),
         fmt::format("{}", test["blocks"].get<uint64_t>())});
  }
  return text;
}

std::string breakdown_table(const json& tests) {
  std::string text = table_head({"per token", "step ms", "compute", "stall", "predictor", "reading",
                                 "of it checksums", "management", "I/O beside", "wanted", "read", "reads",
                                 "DRAM", "messages", "hand-overs a layer", "kernel overhead"});
  for (const json& test : tests) {
    const json& t = test["per_token"];
    text += table_row({test["test"].get<std::string>(), figure(t["step_ms"]), figure(t["compute_ms"]),
                       figure(t["stall_ms"]), figure(t["predictor_ms"]), figure(t["reading_ms"]),
                       figure(t["checksum_ms"]), figure(t["management_ms"]), figure(t["io_ms"]),
                       bytes_text(t["wanted_bytes"]), bytes_text(t["read_bytes"]), figure(t["reads"]),
                       bytes_text(t["dram_bytes"]), figure(t["messages"]), figure(t["handovers_per_layer"]),
                       fmt::format("{:.2f} %", number(t["kernel_overhead_percent"]))});
  }
  return text;
}

std::string peer_table(const json& peer) {
  return table_head({"test", "ours", "peer", "from – to", "ratio", "rounds"}) +
         table_row({peer["test"].get<std::string>(), figure(peer["ours_tokens_per_second"]),
                    figure(peer["tokens_per_second"]["median"]), range_text(peer["tokens_per_second"]),
                    figure(peer["ratio"]), fmt::format("{}", peer["rounds"].get<uint64_t>())}) +
         fmt::format("\nThe peer: `{}`; our memory beside it: {}.\n", peer["command"].get<std::string>(),
                     bytes_text(peer["our_bytes_beside_it"]));
}

std::string energy_note(const std::string& test, const json& energy) {
  std::string parts;
  for (const auto& [part, watts] : energy["watts"].items()) {
    parts += fmt::format("{}{} {:.3g} W {}", parts.empty() ? "" : ", ", part, number(watts),
                         energy["sources"][part].get<std::string>());
  }
  for (const json& part : energy["not_counted"])
    parts += fmt::format(", not counted: {}", part.get<std::string>());
  return fmt::format("- {}: {} and {}CO2 a token, {}; {}\n", test,
                     format_joules(number(energy["joules_per_token"])),
                     format_grams(number(energy["grams_per_token"])),
                     embodied_text(number(energy["embodied_grams_per_token"])), parts);
}

}  // namespace

std::string test_notes(const json& tests) {
  std::string text;
  for (const json& test : tests) {
    const auto name = test["test"].get<std::string>();
    if (const auto n = test["repeated"].get<uint64_t>(); n > 0)
      text +=
          fmt::format("- {}: {} rounds were repeated, the disk was more than 20 % off its median\n", name, n);
    if (const auto n = test["strays_kept"].get<uint64_t>(); n > 0)
      text +=
          fmt::format("- {}: in {} rounds that count the disk was more than 20 % off its median\n", name, n);
    if (const json& energy = test["energy"]; !energy.is_null()) text += energy_note(name, energy);
    const json& limit = test["limit"];
    if (!limit.is_null() && number(limit["flash_ms"]) > 0) {
      text += fmt::format("- {}: limit by flash {} ms ({}), by memory {} ms ({}){}\n", name,
                          figure(limit["flash_ms"]), bytes_text(limit["must_read_bytes"]),
                          figure(limit["memory_ms"]), bytes_text(limit["weight_bytes"]),
                          limit["terms_within_20_percent"].get<bool>() ? ", within 20 % of each other" : "");
    }
  }
  return text;
}

namespace {

// Describes the source of the decoded tokens, and the state at the beginning of a block.
std::string text_line(const json& run) {
  const json& text = run["text"];
  const auto uncounted = run["uncounted_tokens"].get<uint64_t>();
  if (text.is_null()) {
    return fmt::format("- random tokens from an empty context, {} before them {}\n", uncounted,
                       uncounted == 1 ? "does not count" : "do not count");
  }
  return fmt::format(
      "- text {}, {} tokens, continued greedily: its own do not count, nor do {} that fill the "
      "cache\n",
      text["file"].get<std::string>(), word(text["tokens"]), uncounted);
}

}  // namespace

std::string run_lines(const json& run) {
  const auto of = [&](const char* key) { return word(run[key]); };
  const json& shape = run["shape"];
  std::string text;
  text += fmt::format("- model {}: {}, {} layers of {} x {}, {}, {} of weights\n", of("model"),
                      word(shape["architecture"]), word(shape["layers"]), word(shape["d_model"]),
                      word(shape["d_ff"]), word(shape["encoding"]), bytes_text(run["tensor_bytes"]));
  std::string settings;
  for (const json& one : run["set"]) settings += " --set " + one.get<std::string>();
  text += fmt::format(
      "- configuration {}{}: predictor {}, quantizer {}, cache {}, balancer {}; activations {}, KV {}\n",
      of("config").empty() ? "(defaults)" : of("config"), settings, of("predictor"), of("quantizer"),
      of("cache"), of("balancer"), of("activations"), of("kv"));
  text += fmt::format("- {} threads, {}, context {}, prefill chunk {}, seed {}\n", of("threads"),
                      of("kernels"), of("context"), of("prefill_chunk"), of("seed"));
  text += fmt::format("- backend {}, clock {}; {}, {}\n", of("backend"), of("clock"), of("device"),
                      of("cache_state"));
  if (number(run["block_seconds"]) > 0 || number(run["warmup_seconds"]) > 0) {
    text += fmt::format("- blocks of at least {} s after {} s of warm-up\n", number(run["block_seconds"]),
                        number(run["warmup_seconds"]));
  }
  return text + text_line(run);
}

std::string memory_line(const json& run) {
  const json& budget = run["budget"];
  const json& memory = run["memory"];
  std::string text = "- ";
  if (!budget["peak_bytes"].is_null()) {
    text += fmt::format("DRAM {} of {}{}; ", bytes_text(budget["peak_bytes"]),
                        bytes_text(budget["capacity_bytes"]),
                        budget["raised_to_least"] == true ? " (raised to the least)" : "");
  }
  text += fmt::format("process at most {}", bytes_text(memory["peak_rss_bytes"]));
  if (const json& group = memory["group"]; !group.is_null()) {
    text += fmt::format(
        "; memory cgroup at most {}, {}", bytes_text(group["peak_bytes"]),
        group["limit_bytes"].is_null() ? "no limit" : "limit " + bytes_text(group["limit_bytes"]));
  }
  return text + "\n";
}

std::string machine_line(const json& run) {
  const auto of = [&](const char* key) { return word(run[key]); };
  return fmt::format("- {} ({}, {} cores, {}), {}, commit {}\n", of("host"), of("cpu"), of("cores"),
                     bytes_text(run["memory_bytes"]), of("date"), of("commit"));
}

namespace {

std::string to_md(const json& report) {
  std::string text = rates_table(report["tests"]) + "\n" + breakdown_table(report["tests"]) + "\n";
  if (!report["peer"].is_null()) text += peer_table(report["peer"]) + "\n";
  return text + test_notes(report["tests"]) + run_lines(report["run"]) + memory_line(report["run"]) +
         machine_line(report["run"]);
}

std::string csv_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string cell(const json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? csv_quoted(value.get<std::string>()) : value.dump();
}

// Appends the paths of all single values. Lists, and the parts of null values, have no column.
void add_columns(const json& value, const std::string& path, std::vector<std::string>& names) {
  if (value.is_array()) return;
  if (!value.is_object()) {
    names.push_back(path);
    return;
  }
  for (const auto& [key, part] : value.items()) add_columns(part, path + "/" + key, names);
}

// Returns an object for each test.
std::vector<json> lines_of(const json& report) {
  std::vector<json> lines;
  for (const json& test : report["tests"])
    lines.push_back({{"run", report["run"]}, {"test", test}, {"peer", report["peer"]}});
  return lines;
}

}  // namespace

std::string to_csv(const std::vector<json>& lines) {
  std::vector<std::string> names;
  for (const json& line : lines) {
    std::vector<std::string> more;
    add_columns(line, "", more);
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

std::string to_text(const json& report, Format format) {
  switch (format) {
    case Format::json:
      return report.dump(2) + "\n";
    case Format::csv:
      return to_csv(lines_of(report));
    case Format::md:
      break;
  }
  return to_md(report);
}

}  // namespace tierd
