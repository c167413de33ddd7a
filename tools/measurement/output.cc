#include "tools/measurement/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/base/units.h"
#include "core/report/figure_json.h"
#include "core/watch/energy/energy_text.h"
#include "tools/measurement/md_table.h"

namespace tierd {
namespace {

using nlohmann::json;

std::string rates_table(const std::vector<TestFigures>& tests) {
  std::string text = table_head(
      {"test", "tokens/s", "from – to", "limit", "of the limit", "flash", "memory", "of memory", "blocks"});
  for (const TestFigures& test : tests) {
    const auto of_limit = [&](auto&& format) { return test.limit ? format(*test.limit) : std::string(); };
    const double flash = test.flash_bytes_per_second.median;
    text += table_row({test.test, figure(test.tokens_per_second.median), range_text(test.tokens_per_second),
                       of_limit([](const BenchLimitFigures& l) { return figure(l.tokens_per_second); }),
                       of_limit([](const BenchLimitFigures& l) { return figure(l.ratio.median); }),
                       flash > 0 ? format_rate(flash) : "", format_rate(test.memory_bytes_per_second.median),
                       of_limit([](const BenchLimitFigures& l) {
                         return fmt::format("{:.0f} %", 100 * l.share_of_memory_bandwidth);
                       }),
                       fmt::format("{}", test.blocks)});
  }
  return text;
}

std::string breakdown_table(const std::vector<TestFigures>& tests) {
  std::string text = table_head({"per token", "step ms", "compute", "stall", "predictor", "reading",
                                 "of it checksums", "management", "I/O beside", "wanted", "read", "reads",
                                 "DRAM", "messages", "hand-overs a layer", "kernel overhead"});
  for (const TestFigures& test : tests) {
    const TokenFigures& t = test.per_token;
    text +=
        table_row({test.test, figure(t.step_ms), figure(t.compute_ms), figure(t.stall_ms),
                   figure(t.predictor_ms), figure(t.reading_ms), figure(t.checksum_ms),
                   figure(t.management_ms), figure(t.io_ms), bytes_text(t.wanted_bytes),
                   bytes_text(t.read_bytes), figure(t.reads), bytes_text(t.dram_bytes), figure(t.messages),
                   figure(t.handovers_per_layer), fmt::format("{:.2f} %", t.kernel_overhead_percent)});
  }
  return text;
}

std::string peer_table(const PeerFigures& peer) {
  return table_head({"test", "ours", "peer", "from – to", "ratio", "rounds"}) +
         table_row({peer.test, figure(peer.ours_tokens_per_second), figure(peer.tokens_per_second.median),
                    range_text(peer.tokens_per_second), figure(peer.ratio), fmt::format("{}", peer.rounds)}) +
         fmt::format("\nThe peer: `{}`; our memory beside it: {}.\n", peer.command,
                     format_bytes(static_cast<double>(peer.our_bytes_beside_it)));
}

std::string energy_note(const std::string& test, const BenchEnergyFigures& energy) {
  std::string parts;
  for (const auto& [part, watts] : energy.watts) {
    parts += fmt::format("{}{} {:.3g} W {}", parts.empty() ? "" : ", ", part, watts, energy.sources.at(part));
  }
  for (const std::string& part : energy.not_counted) parts += fmt::format(", not counted: {}", part);
  return fmt::format("- {}: {} and {}CO2 a token, {}; {}\n", test, format_joules(energy.joules_per_token),
                     format_grams(energy.grams_per_token), embodied_text(energy.embodied_grams_per_token),
                     parts);
}

}  // namespace

std::string test_notes(const std::vector<TestFigures>& tests) {
  std::string text;
  for (const TestFigures& test : tests) {
    if (test.repeated > 0)
      text += fmt::format("- {}: {} rounds were repeated, the disk was more than 20 % off its median\n",
                          test.test, test.repeated);
    if (test.strays_kept > 0)
      text += fmt::format("- {}: in {} rounds that count the disk was more than 20 % off its median\n",
                          test.test, test.strays_kept);
    if (test.energy) text += energy_note(test.test, *test.energy);
    if (const auto& limit = test.limit; limit && limit->flash_ms > 0) {
      text += fmt::format("- {}: limit by flash {} ms ({}), by memory {} ms ({}){}\n", test.test,
                          figure(limit->flash_ms), bytes_text(limit->must_read_bytes),
                          figure(limit->memory_ms), bytes_text(limit->weight_bytes),
                          limit->terms_within_20_percent ? ", within 20 % of each other" : "");
    }
  }
  return text;
}

namespace {

// Describes the source of the decoded tokens, and the state at the beginning of a block.
std::string text_line(const BenchRunFigures& run) {
  if (!run.text) {
    return fmt::format("- random tokens from an empty context, {} before them {}\n",
                       word(run.uncounted_tokens),
                       run.uncounted_tokens == 1 ? "does not count" : "do not count");
  }
  return fmt::format(
      "- text {}, {} tokens, continued greedily: its own do not count, nor do {} that fill the "
      "cache\n",
      word(run.text->file), word(run.text->tokens), word(run.uncounted_tokens));
}

}  // namespace

std::string run_lines(const BenchRunFigures& run) {
  const ShapeFigures& shape = run.shape;
  std::string text;
  text += fmt::format("- model {}: {}, {} layers of {} x {}, {}, {} of weights\n", word(run.model),
                      word(shape.architecture), word(shape.layers), word(shape.d_model), word(shape.d_ff),
                      word(shape.encoding), bytes_text(run.tensor_bytes));
  std::string settings;
  for (const std::string& one : run.set) settings += " --set " + one;
  text += fmt::format(
      "- configuration {}{}: predictor {}, quantizer {}, cache {}, balancer {}; activations {}, KV {}\n",
      run.config.empty() ? "(defaults)" : run.config, settings, word(run.predictor), word(run.quantizer),
      word(run.cache), word(run.balancer), word(run.activations), word(run.kv));
  text += fmt::format("- {} threads, {}, context {}, prefill chunk {}, seed {}\n", word(run.threads),
                      word(run.kernels), word(run.context), word(run.prefill_chunk), word(run.seed));
  text += fmt::format("- backend {}, clock {}; {}, {}\n", word(run.backend), word(run.clock),
                      word(run.device), word(run.cache_state));
  if (run.block_seconds > 0.0 || run.warmup_seconds > 0.0) {
    text += fmt::format("- blocks of at least {} s after {} s of warm-up\n", word(run.block_seconds),
                        word(run.warmup_seconds));
  }
  return text + text_line(run);
}

std::string memory_line(const BenchRunFigures& run) {
  const BenchBudgetFigures& budget = run.budget;
  std::string text = "- ";
  if (budget.peak_bytes) {
    text += fmt::format("DRAM {} of {}{}; ", bytes_text(budget.peak_bytes), bytes_text(budget.capacity_bytes),
                        budget.raised_to_least == true ? " (raised to the least)" : "");
  }
  if (!run.memory) return text + "\n";
  text += fmt::format("process at most {}", bytes_text(run.memory->peak_rss_bytes));
  if (const auto& group = run.memory->group) {
    text += fmt::format("; memory cgroup at most {}, {}", bytes_text(group->peak_bytes),
                        group->limit_bytes ? "limit " + bytes_text(group->limit_bytes) : "no limit");
  }
  return text + "\n";
}

std::string machine_line(const BenchRunFigures& run) {
  return fmt::format("- {} ({}, {} cores, {}), {}, commit {}\n", word(run.host), word(run.cpu),
                     word(run.cores), bytes_text(run.memory_bytes), word(run.date), word(run.commit));
}

namespace {

std::string to_md(const BenchFigures& report) {
  std::string text = rates_table(report.tests) + "\n" + breakdown_table(report.tests) + "\n";
  if (report.peer) text += peer_table(*report.peer) + "\n";
  return text + test_notes(report.tests) + run_lines(report.run) + memory_line(report.run) +
         machine_line(report.run);
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
std::vector<json> lines_of(const BenchFigures& report) {
  std::vector<json> lines;
  for (const TestFigures& test : report.tests) {
    lines.push_back({{"run", figures_json(report.run)},
                     {"test", figures_json(test)},
                     {"peer", figures::value_json(report.peer)}});
  }
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

std::string to_text(const BenchFigures& report, Format format) {
  switch (format) {
    case Format::json:
      return figures_json(report).dump(2) + "\n";
    case Format::csv:
      return to_csv(lines_of(report));
    case Format::md:
      break;
  }
  return to_md(report);
}

}  // namespace tierd
