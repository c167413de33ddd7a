// The joules and grams of CO2 of a run, part by part: modelled by a description, or measured.
//
//   energy       = sum over memories of size x power per unit x time + power of processors x time
//   operational  = energy x intensity of the grid
//   embodied     = mass that making a device has emitted x time / life span
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/enum_names.h"
#include "core/report/figure.h"
#include "core/watch/energy/energy_meter.h"
#include "core/watch/energy/power_description.h"

namespace tierd {

enum class EnergyPart : uint8_t { processor, gpu, dram, flash };
inline constexpr size_t kEnergyParts = 4;
constexpr std::array<std::string_view, kEnergyParts> names_of(EnergyPart) {
  return {"processor", "gpu", "dram", "flash"};
}

// The amount of each part in use, [parts]: processors and GPUs, GB of DRAM, the flash.
using UsedParts = std::array<double, kEnergyParts>;

struct EnergyUse {
  double joules = 0;
  double embodied_grams = 0;  // of CO2

  EnergyUse& operator+=(const EnergyUse& other) {
    joules += other.joules;
    embodied_grams += other.embodied_grams;
    return *this;
  }
};
// [parts]
using EnergyUses = std::array<EnergyUse, kEnergyParts>;

// Returns the energy of `used` by the description, each part for its number of seconds.
EnergyUses modelled_use(const PowerDescription& power, const UsedParts& used,
                        const std::array<double, kEnergyParts>& seconds);
EnergyUse sum(const EnergyUses& uses);
double operational_grams(const PowerDescription& power, double joules);

// A part of a run, with its energy and emissions.
struct EnergySpan {
  double seconds = 0;
  uint64_t tokens = 0;
  double joules = 0;
  double operational_grams = 0;
  double embodied_grams = 0;

  double watts() const { return seconds > 0 ? joules / seconds : 0; }
  double grams() const { return operational_grams + embodied_grams; }
  // 0 if there are no tokens.
  double joules_per_token() const { return per_token(joules); }
  double grams_per_token() const { return per_token(grams()); }
  double embodied_grams_per_token() const { return per_token(embodied_grams); }

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = EnergySpan;
    return std::tuple(
        Figure{&F::seconds, "seconds", Quantity::seconds, sum, "of the run's clock"},
        Figure{&F::tokens, "tokens", Quantity::tokens, sum, "decoded in it; of the run: generated"},
        Figure{&F::watts, "watts", Quantity::watts, derived, "the mean"},
        Figure{&F::joules, "joules", Quantity::joules, sum, "of all parts"},
        Figure{&F::operational_grams, "operational_grams", grams, sum, "CO2 of the energy"},
        Figure{&F::embodied_grams, "embodied_grams", grams, sum, "share of the CO2 of making the devices"},
        Figure{&F::joules_per_token, "joules_per_token", Quantity::joules, derived, "0 without tokens"},
        Figure{&F::grams_per_token, "grams_per_token", grams, derived, "CO2, operational and embodied"},
        Figure{&F::embodied_grams_per_token, "embodied_grams_per_token", grams, derived, "embodied CO2"});
  }

 private:
  double per_token(double value) const { return tokens == 0 ? 0 : value / static_cast<double>(tokens); }
};

// The totals that report, JSON and /metrics show.
struct EnergyTotals {
  struct Part {
    EnergyPart part = EnergyPart::processor;
    std::string meter;  // the meter that measured it; empty: modelled
    std::string why;    // why it is modelled; empty for a part that has no kind of meter
    double decode_joules = 0;
    double run_joules = 0;
    double decode_seconds = 0;  // of EnergyTotals::decode
    double run_seconds = 0;

    bool measured() const { return !meter.empty(); }
    std::string_view source() const { return measured() ? "measured" : "modelled"; }
    double decode_watts() const { return decode_seconds > 0 ? decode_joules / decode_seconds : 0; }
    double run_watts() const { return run_seconds > 0 ? run_joules / run_seconds : 0; }
    static constexpr auto figures() {
      using enum Quantity;
      using enum Adds;
      using F = Part;
      return std::tuple(
          Figure{&F::part, "part", text, latest, "processor, gpu, dram or flash"},
          Figure{&F::source, "source", text, derived, "measured or modelled"},
          Figure{&F::meter, "meter", text, latest, "the meter that measured it", kOrNull},
          Figure{&F::why, "why_modelled", text, latest, "the reason why no meter measured it", kOrNull},
          Figure{&F::decode_watts, "decode_watts", watts, derived, "mean power while decoding"},
          Figure{&F::decode_joules, "decode_joules", joules, sum, "energy of decoding"},
          Figure{&F::run_watts, "run_watts", watts, derived, "mean power of the run"},
          Figure{&F::run_joules, "run_joules", joules, sum, "energy of the run, waiting included"},
          Basis{&F::decode_seconds}, Basis{&F::run_seconds});
    }
  };
  // A part of a described machine that this machine lacks: its joules are not counted.
  struct NotCounted {
    EnergyPart part = EnergyPart::gpu;
    std::string why;
    static constexpr auto figures() {
      return std::tuple(
          Figure{&NotCounted::part, "part", Quantity::text, Adds::latest, "a part that this machine lacks"},
          Figure{&NotCounted::why, "why", Quantity::text, Adds::latest, "the agent that stands for it"});
    }
  };
  std::string described_by;  // path of the description
  double grams_per_kwh = 0;
  std::vector<Part> parts;  // the parts in use
  std::vector<NotCounted> not_counted;
  EnergySpan decode;
  EnergySpan run;  // everything since the ledger was started

  static constexpr auto figures() {
    using enum Quantity;
    using enum Adds;
    using F = EnergyTotals;
    return std::tuple(
        Figure{&F::described_by, "described_by", text, latest, "file of the machine's description"},
        Figure{&F::grams_per_kwh, "grams_per_kwh", grams, latest, "CO2 of a kWh of the grid"},
        Figure{&F::parts, "parts", Quantity::parts, sum, "the parts in use"},
        Figure{&F::not_counted, "not_counted", Quantity::parts, latest, "described parts without energy"},
        Figure{&F::decode, "decode", Quantity::parts, sum, "steps of decoding"},
        Figure{&F::run, "run", Quantity::parts, sum, "everything since the start of loading"});
  }
};

// The state of a run. All numbers except `used` only increase.
struct EnergyReading {
  uint64_t now_ns = 0;     // by the run's clock
  uint64_t busy_ns = 0;    // part of now_ns spent on loading and steps; waiting processors are not charged
  uint64_t decode_ns = 0;  // part of busy_ns spent on steps of decoding
  uint64_t decoded_tokens = 0;
  uint64_t generated_tokens = 0;  // decoded ones, and the first token of each text
  uint64_t flash_bytes = 0;
  UsedParts used = {};  // now; for the flash, the device, read or not
};

// Sums energy from update to update. The parts in use at the end of an interval count as in use for all of
// it; the flash is in use in intervals in which it was read. Decode is charged with the share of a meter's
// interval that it has of the time. One thread.
class EnergyLedger {
 public:
  EnergyLedger(PowerDescription power, EnergyMeters meters, const EnergyReading& begin);

  void look(const EnergyReading& now);
  // The totals as of the last update.
  EnergyTotals totals() const;

 private:
  struct Metered {
    std::unique_ptr<EnergyMeter> meter;  // NULL: none, or it has failed
    std::string why;                     // why there is none
    double last = 0;                     // joules
    double decode_joules = 0;
    double run_joules = 0;
  };
  static Metered started(FoundMeter found);

  PowerDescription power_;
  std::array<Metered, kEnergyParts> metered_;
  EnergyReading begin_;
  EnergyReading last_;
  EnergyUses decode_ = {};
  EnergyUses run_ = {};
};

}  // namespace tierd
