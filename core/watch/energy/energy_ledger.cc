#include "core/watch/energy/energy_ledger.h"

#include <algorithm>
#include <utility>

namespace tierd {
namespace {

constexpr double kSecond = 1e9;  // ns
constexpr double kJoulesOfKwh = 3.6e6;
constexpr double kSecondsOfYear = 365.25 * 24 * 3600;
constexpr double kGramsOfKilogram = 1000;

size_t index(EnergyPart part) {
  return static_cast<size_t>(part);
}

const DevicePower* power_of(const PowerDescription& power, size_t part) {
  switch (static_cast<EnergyPart>(part)) {
    case EnergyPart::processor:
      return &power.processor;
    case EnergyPart::gpu:
      return power.gpu ? &*power.gpu : nullptr;
    case EnergyPart::dram:
      return &power.dram;
    case EnergyPart::flash:
      return &power.flash;
  }
  return nullptr;
}

double seconds(uint64_t begin_ns, uint64_t end_ns) {
  return static_cast<double>(end_ns - std::min(begin_ns, end_ns)) / kSecond;
}

void add(EnergyUses& to, const EnergyUses& uses) {
  for (size_t part = 0; part < kEnergyParts; ++part) to[part] += uses[part];
}

}  // namespace

EnergyMeters no_meters(const Error& why) {
  return {why, why, why};
}

EnergyUses modelled_use(const PowerDescription& power, const UsedParts& used,
                        const std::array<double, kEnergyParts>& seconds) {
  EnergyUses uses;
  for (size_t part = 0; part < kEnergyParts; ++part) {
    const DevicePower* const device = power_of(power, part);
    if (device == nullptr) continue;
    uses[part].joules = used[part] * device->watts * seconds[part];
    if (device->life_years > 0) {
      uses[part].embodied_grams = used[part] * device->embodied_kg * kGramsOfKilogram * seconds[part] /
                                  (device->life_years * kSecondsOfYear);
    }
  }
  return uses;
}

EnergyUse sum(const EnergyUses& uses) {
  EnergyUse all;
  for (const EnergyUse& use : uses) all += use;
  return all;
}

double operational_grams(const PowerDescription& power, double joules) {
  return joules / kJoulesOfKwh * power.grams_per_kwh;
}

EnergyLedger::EnergyLedger(PowerDescription power, EnergyMeters meters, const EnergyReading& begin)
    : power_(std::move(power)), begin_(begin), last_(begin) {
  metered_[index(EnergyPart::processor)] = started(std::move(meters.processor));
  metered_[index(EnergyPart::gpu)] = started(std::move(meters.gpu));
  metered_[index(EnergyPart::dram)] = started(std::move(meters.dram));
}

EnergyLedger::Metered EnergyLedger::started(FoundMeter found) {
  Metered metered;
  if (!found.ok()) {
    metered.why = found.error().line();
    return metered;
  }
  metered.meter = std::move(*found);
  const auto joules = metered.meter->joules();
  if (joules) metered.last = *joules;
  if (!joules) {
    metered.why = std::string(metered.meter->name()) + " does not tell";
    metered.meter.reset();
  }
  return metered;
}

void EnergyLedger::look(const EnergyReading& now) {
  const double all = seconds(last_.now_ns, now.now_ns);
  const double busy = std::min(all, seconds(last_.busy_ns, now.busy_ns));
  const double decode = std::min(busy, seconds(last_.decode_ns, now.decode_ns));
  UsedParts used = now.used;
  if (now.flash_bytes == last_.flash_bytes) used[index(EnergyPart::flash)] = 0;
  add(run_, modelled_use(power_, used, {busy, busy, all, all}));
  add(decode_, modelled_use(power_, used, {decode, decode, decode, decode}));
  for (Metered& metered : metered_) {
    if (metered.meter == nullptr) continue;
    const auto joules = metered.meter->joules();
    if (!joules) {
      metered.why = std::string(metered.meter->name()) + " has ceased to tell";
      metered.meter.reset();
      continue;
    }
    const double counted = *joules - metered.last;
    metered.last = *joules;
    metered.run_joules += counted;
    if (all > 0) metered.decode_joules += counted * decode / all;
  }
  last_ = now;
}

EnergyTotals EnergyLedger::totals() const {
  EnergyTotals totals;
  totals.described_by = power_.path;
  totals.grams_per_kwh = power_.grams_per_kwh;
  totals.decode.seconds = seconds(begin_.decode_ns, last_.decode_ns);
  totals.decode.tokens = last_.decoded_tokens - begin_.decoded_tokens;
  totals.run.seconds = seconds(begin_.now_ns, last_.now_ns);
  totals.run.tokens = last_.generated_tokens - begin_.generated_tokens;
  for (size_t i = 0; i < kEnergyParts; ++i) {
    const Metered& metered = metered_[i];
    if (last_.used[i] == 0) continue;
    const bool measured = metered.meter != nullptr;
    EnergyTotals::Part& part = totals.parts.emplace_back();
    part.part = static_cast<EnergyPart>(i);
    part.meter = measured ? metered.meter->name() : "";
    part.why = measured ? "" : metered.why;
    part.decode_seconds = totals.decode.seconds;
    part.run_seconds = totals.run.seconds;
    part.decode_joules = measured ? metered.decode_joules : decode_[i].joules;
    part.run_joules = measured ? metered.run_joules : run_[i].joules;
    totals.decode.joules += part.decode_joules;
    totals.run.joules += part.run_joules;
  }
  totals.decode.operational_grams = operational_grams(power_, totals.decode.joules);
  totals.run.operational_grams = operational_grams(power_, totals.run.joules);
  totals.decode.embodied_grams = sum(decode_).embodied_grams;
  totals.run.embodied_grams = sum(run_).embodied_grams;
  return totals;
}

}  // namespace tierd
