// The description of a machine: how long its devices take for what they are asked. tier-calibrate measures
// this one and writes its description; virtual time goes by it (run.clock = "model").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/read_curve.h"
#include "core/base/result.h"
#include "core/model/layout/encoding.h"
#include "core/time/machine_file.h"
#include "core/time/unit_description.h"

namespace tierd {

struct DiskDescription {
  ReadCurve reads;          // at random places, many in flight: the disk's time for each
  uint64_t latency_ns = 0;  // of one read alone
  double check_rate = 0;    // bytes a second that one thread checks after reading
  double copy_rate = 0;     // the same thread's, of copies out of the bounce buffer; 0: they take no time
  uint64_t thread_ns = 0;   // what each read takes of the thread that asks for it
  // It tells of up to so many reads at once, when it has served all that it was given; 1: of each by itself.
  uint32_t round = 1;
  std::string folder = {};  // on the disk that was measured, where that is known
};

struct KernelRate {
  Encoding encoding = Encoding::f32;
  bool int8_activations = false;  // else f32
  double gemv = 0;                // one token: bytes of weights a second
  double gemm = 0;                // many tokens: multiply-adds a second
  double columns = 0;             // one token, of columns that lie apart and are added up; 0: as gemv
  // What gemv and columns are after some milliseconds without work: threads are woken, and cores that others
  // share come back. 0: the same as otherwise.
  double gemv_after_wait = 0;
  double columns_after_wait = 0;

  // One token: bytes a second of rows, or of columns.
  double of_one(bool of_columns, bool after_wait) const {
    const double slower = of_columns ? columns_after_wait : gemv_after_wait;
    if (after_wait && slower != 0) return slower;
    return of_columns && columns != 0 ? columns : gemv;
  }
};

// All threads together.
struct ProcessorDescription {
  double memory_rate = 0;  // bytes a second that are read
  std::vector<KernelRate> rates;
  uint32_t threads = 0;  // where their number is known
  // Floats a second of norms, additions and the like, of one thread. The default is assumed: neither
  // tier-calibrate nor a paper measures it.
  double floats_rate = 4e9;
  // A message that comes when its thread had nothing to do for so long has the rates after a wait. The
  // default is assumed: tier-calibrate measures those rates after 5 ms without work.
  uint64_t after_wait_ns = 1'000'000;

  // Describes a part of the threads, which has this share of all rates.
  ProcessorDescription share(double share) const;
  // Returns nothing where no rate of the encoding was measured.
  std::optional<KernelRate> rate(Encoding encoding, bool int8_activations) const;
};

// It carries neurons, and activations, into the memory of a tier, from other memories.
struct LinkDescription {
  std::string from = {};    // the name of the tier that it leads from; empty: from any
  std::string to;           // the tier's name
  double rate = 0;          // bytes a second
  uint64_t latency_ns = 0;  // of each message
  // It carries neurons while the disk reads others; false: one does all of it, one thing after the other.
  bool beside_disk = true;
};

struct MachineDescription {
  std::string path;
  DiskDescription disk;
  ProcessorDescription processor;
  std::vector<LinkDescription> links = {};
  std::map<std::string, UnitDescription> units = {};  // by the tier whose agents compute on them

  // The first one that leads there. Returns nothing where there is none.
  std::optional<LinkDescription> link_to(const std::string& tier) const;
  // The one between two tiers, or inside one that has several memories; else one that leads there from any.
  // Returns nothing where the processor copies.
  std::optional<LinkDescription> link(const std::string& from, const std::string& to) const;
  // NULL: the tier's agents compute on the processor.
  const UnitDescription* unit(const std::string& tier) const;
};

// A machine of which nothing was measured: what a run on it fetches and evicts counts, its times mean
// nothing.
MachineDescription any_machine();

// `name`: of a file in configs/hardware, or a file's path. Errors name file, key and what was expected:
// those of read_machine_file; invalid_argument.
Result<MachineDescription> read_machine(const std::string& name);

}  // namespace tierd
