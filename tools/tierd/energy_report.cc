#include "tools/tierd/energy_report.h"

#include <algorithm>
#include <filesystem>

#include "core/watch/energy/energy_text.h"

namespace tierd {
namespace {

// Returns "392 W = processor 42 measured (RAPL) + gpu 350 modelled" or "15 W modelled = processor 15".
std::string watts_text(const EnergyTotals& energy, bool decode) {
  const bool measured = std::ranges::any_of(energy.parts, &EnergyTotals::Part::measured);
  std::string text;
  for (const EnergyTotals::Part& part : energy.parts) {
    text += fmt::format("{}{} {:.3g}", text.empty() ? "" : " + ", name(part.part),
                        decode ? part.decode_watts() : part.run_watts());
    if (part.measured()) {
      text += fmt::format(" measured ({})", part.meter);
    } else if (measured) {
      text += " modelled";
    }
    // The report says why a GPU's power was modelled instead of measured.
    if (part.part == EnergyPart::gpu && !part.why.empty()) text += fmt::format(" ({})", part.why);
  }
  return fmt::format("{:.3g} W{} = {}", (decode ? energy.decode : energy.run).watts(),
                     measured ? "" : " modelled", text);
}

ReportLines sum_lines(const EnergyTotals& energy) {
  const EnergySpan &decode = energy.decode, &run = energy.run;
  const bool decoded = decode.tokens != 0;
  const std::string watts = watts_text(energy, decoded);
  const std::string by =
      fmt::format("{}, {:.4g} g/kWh; {} and {}CO2 the whole run",
                  std::filesystem::path(energy.described_by).stem().string(), energy.grams_per_kwh,
                  format_joules(run.joules), format_grams(run.grams()));
  if (!decoded) return {{"energy", watts}, {"carbon", "by " + by}};
  return {{"energy", fmt::format("{} a token; {}", format_joules(decode.joules_per_token()), watts)},
          {"carbon", fmt::format("{}CO2 a token, {}; by {}", format_grams(decode.grams_per_token()),
                                 embodied_text(decode.embodied_grams_per_token()), by)}};
}

}  // namespace

std::optional<std::string> EnergyFigures::unknown() const {
  if (totals) return std::nullopt;
  return "run.energy names no description, and the configurations' folder has none";
}

ReportLines energy_lines(const EnergyFigures& energy) {
  if (!energy.totals) return {{"energy", "unknown: " + *energy.unknown()}};
  ReportLines lines = sum_lines(*energy.totals);
  for (const EnergyTotals::NotCounted& one : energy.totals->not_counted)
    lines.emplace_back("", fmt::format("not counted: {} ({})", name(one.part), one.why));
  return lines;
}

}  // namespace tierd
