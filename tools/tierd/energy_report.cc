#include "tools/tierd/energy_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/watch/energy/energy_text.h"

namespace tierd {
namespace {

using nlohmann::json;

json span_json(const EnergySpan& span) {
  return {{"seconds", span.seconds},
          {"tokens", span.tokens},
          {"watts", span.watts()},
          {"joules", span.joules},
          {"operational_grams", span.operational_grams},
          {"embodied_grams", span.embodied_grams},
          {"joules_per_token", span.joules_per_token()},
          {"grams_per_token", span.grams_per_token()},
          {"embodied_grams_per_token", span.embodied_grams_per_token()}};
}

json part_json(const EnergyTotals::Part& part, const EnergyTotals& totals) {
  const auto watts = [](double joules, double seconds) { return seconds > 0 ? joules / seconds : 0; };
  return {{"part", name(part.part)},
          {"source", part.meter.empty() ? "modelled" : "measured"},
          {"meter", part.meter.empty() ? json() : json(part.meter)},
          {"why_modelled", part.why.empty() ? json() : json(part.why)},
          {"decode_watts", watts(part.decode_joules, totals.decode.seconds)},
          {"decode_joules", part.decode_joules},
          {"run_watts", watts(part.run_joules, totals.run.seconds)},
          {"run_joules", part.run_joules}};
}

// Returns "392 W = processor 42 measured (RAPL) + gpu 350 modelled" or "15 W modelled = processor 15".
std::string watts_text(const json& energy, const std::string& span) {
  const json& parts = energy["parts"];
  const bool measured = std::ranges::any_of(parts, [](const json& part) { return !part["meter"].is_null(); });
  std::string text;
  for (const json& part : parts) {
    const json& meter = part["meter"];
    const json& why = part["why_modelled"];
    text += fmt::format("{}{} {:.3g}", text.empty() ? "" : " + ", part["part"].get<std::string>(),
                        part[span + "_watts"].get<double>());
    if (!meter.is_null()) {
      text += fmt::format(" measured ({})", meter.get<std::string>());
    } else if (measured) {
      text += " modelled";
    }
    // The report says why a GPU's power was modelled instead of measured.
    if (part["part"] == name(EnergyPart::gpu) && !why.is_null())
      text += fmt::format(" ({})", why.get<std::string>());
  }
  return fmt::format("{:.3g} W{} = {}", energy[span]["watts"].get<double>(), measured ? "" : " modelled",
                     text);
}

std::vector<std::pair<std::string, std::string>> sum_lines(const json& energy) {
  if (energy.contains("unknown")) return {{"energy", "unknown: " + energy["unknown"].get<std::string>()}};
  const json& decode = energy["decode"];
  const bool decoded = decode["tokens"].get<uint64_t>() != 0;
  const auto number = [&](const char* span, const char* key) { return energy[span][key].get<double>(); };
  const std::string watts = watts_text(energy, decoded ? "decode" : "run");
  const std::string described = energy["described_by"].get<std::string>();
  const std::string by = fmt::format(
      "{}, {:.4g} g/kWh; {} and {}CO2 the whole run", std::filesystem::path(described).stem().string(),
      energy["grams_per_kwh"].get<double>(), format_joules(number("run", "joules")),
      format_grams(number("run", "operational_grams") + number("run", "embodied_grams")));
  if (!decoded) return {{"energy", watts}, {"carbon", "by " + by}};
  return {
      {"energy", fmt::format("{} a token; {}", format_joules(number("decode", "joules_per_token")), watts)},
      {"carbon", fmt::format("{}CO2 a token, {}; by {}", format_grams(number("decode", "grams_per_token")),
                             embodied_text(number("decode", "embodied_grams_per_token")), by)}};
}

}  // namespace

json energy_json(const std::optional<EnergyTotals>& totals) {
  if (!totals)
    return {{"unknown", "run.energy names no description, and the configurations' folder has none"}};
  json parts = json::array();
  for (const EnergyTotals::Part& part : totals->parts) parts.push_back(part_json(part, *totals));
  json not_counted = json::array();
  for (const EnergyTotals::NotCounted& one : totals->not_counted)
    not_counted.push_back({{"part", name(one.part)}, {"why", one.why}});
  return {{"described_by", totals->described_by},
          {"grams_per_kwh", totals->grams_per_kwh},
          {"parts", std::move(parts)},
          {"not_counted", std::move(not_counted)},
          {"decode", span_json(totals->decode)},
          {"run", span_json(totals->run)}};
}

std::vector<std::pair<std::string, std::string>> energy_lines(const json& energy) {
  std::vector<std::pair<std::string, std::string>> lines = sum_lines(energy);
  if (energy.contains("unknown")) return lines;
  for (const json& one : energy["not_counted"]) {
    lines.emplace_back("", fmt::format("not counted: {} ({})", one["part"].get<std::string>(),
                                       one["why"].get<std::string>()));
  }
  return lines;
}

}  // namespace tierd
