// What a run costs in joules and in grams of CO2, part by part: as its machine is described, or as it is
// measured.
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

#include "core/watch/energy/energy_meter.h"
#include "core/watch/energy/power_description.h"

namespace tierd {

enum class EnergyPart : uint8_t { processor, gpu, dram, flash };
inline constexpr size_t kEnergyParts = 4;
std::string_view name(EnergyPart part);

// How much of each part is in use, [parts]: processors and GPUs, GB of DRAM, the flash.
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

// What `used` takes in so many seconds, each part for as long as it is in use, by the description.
EnergyUses modelled_use(const PowerDescription& power, const UsedParts& used,
                        const std::array<double, kEnergyParts>& seconds);
EnergyUse sum(const EnergyUses& uses);
double operational_grams(const PowerDescription& power, double joules);

// A part of a run, and what it took.
struct EnergySpan {
  double seconds = 0;
  uint64_t tokens = 0;
  double joules = 0;
  double operational_grams = 0;
  double embodied_grams = 0;

  double watts() const { return seconds > 0 ? joules / seconds : 0; }
  double grams() const { return operational_grams + embodied_grams; }
  // 0 where there are no tokens.
  double joules_per_token() const { return per_token(joules); }
  double grams_per_token() const { return per_token(grams()); }
  double embodied_grams_per_token() const { return per_token(embodied_grams); }

 private:
  double per_token(double value) const { return tokens == 0 ? 0 : value / static_cast<double>(tokens); }
};

// This is what report, JSON and /metrics show.
struct EnergyTotals {
  struct Part {
    EnergyPart part = EnergyPart::processor;
    std::string meter;  // that has measured it; empty: it is modelled
    std::string why;    // it is modelled; empty where nothing measures such a part anywhere
    double decode_joules = 0;
    double run_joules = 0;
  };
  // A part of a described machine that no hardware of this one has played: it has no joules in a run.
  struct NotCounted {
    EnergyPart part = EnergyPart::gpu;
    std::string why;
  };
  std::string described_by;  // a file
  double grams_per_kwh = 0;
  std::vector<Part> parts;  // that were in use
  std::vector<NotCounted> not_counted;
  EnergySpan decode;
  EnergySpan run;  // everything since it began to count
};

// Where a run stands. All numbers but `used` only rise.
struct EnergyReading {
  uint64_t now_ns = 0;     // by the run's clock
  uint64_t busy_ns = 0;    // of it: loading and making steps; processors that wait are charged nothing
  uint64_t decode_ns = 0;  // of that: steps of decoding
  uint64_t decoded_tokens = 0;
  uint64_t generated_tokens = 0;  // those, and the first of each text
  uint64_t flash_bytes = 0;
  UsedParts used = {};  // now; of the flash, what there is
};

// Counts from look to look. What is in use at the end of an interval is taken for what was in use all along
// it; the flash is in use in intervals in which it was read. What a meter has counted in an interval is
// decode's by decode's share of the time. One thread.
class EnergyLedger {
 public:
  EnergyLedger(PowerDescription power, EnergyMeters meters, const EnergyReading& begin);

  void look(const EnergyReading& now);
  // As of the last look.
  EnergyTotals totals() const;

 private:
  struct Metered {
    std::unique_ptr<EnergyMeter> meter;  // NULL: there is none, or it has failed
    std::string why;                     // there is none
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
