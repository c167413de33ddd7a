// The description of a machine: the time that its devices take for requests. tier-calibrate measures this
// machine and writes its description; virtual time uses it (run.clock = "model").
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
  ReadCurve reads;          // disk's time for each read, at random places, many in flight
  uint64_t latency_ns = 0;  // of one read alone
  double check_rate = 0;    // bytes a second that one thread verifies after reading
  double copy_rate = 0;     // of the same thread, for copies out of the bounce buffer; 0: they take no time
  uint64_t thread_ns = 0;   // time of the requesting thread for each read
  // Most reads that the disk reports at once, after the last that it was given; 1: each by itself.
  uint32_t round = 1;
  std::string folder = {};  // on the measured disk, if known
};

struct KernelRate {
  Encoding encoding = Encoding::f32;
  bool int8_activations = false;  // else f32
  double gemv = 0;                // one token: bytes of weights a second
  double gemm = 0;                // many tokens: multiply-adds a second
  double columns = 0;             // one token, scattered columns whose results are added; 0: as gemv
  // The rates of gemv and columns after some milliseconds without work: threads are woken, and shared cores
  // are given back. 0: no difference.
  double gemv_after_wait = 0;
  double columns_after_wait = 0;

  // Returns bytes a second for one token, of rows or of columns.
  double of_one(bool of_columns, bool after_wait) const {
    const double slower = of_columns ? columns_after_wait : gemv_after_wait;
    if (after_wait && slower != 0) return slower;
    return of_columns && columns != 0 ? columns : gemv;
  }
};

// All threads together.
struct ProcessorDescription {
  double memory_rate = 0;  // bytes a second read
  std::vector<KernelRate> rates;
  uint32_t threads = 0;  // 0: unknown
  // Floats a second of norms, additions and the like, of one thread. The default is assumed: neither
  // tier-calibrate nor a paper measures it.
  double floats_rate = 4e9;
  // Idle time of a thread after which a message has the rates after a wait. The default is assumed:
  // tier-calibrate measures those rates after 5 ms without work.
  uint64_t after_wait_ns = 1'000'000;

  // Returns the description of a part of the threads, with this share of all rates.
  ProcessorDescription share(double share) const;
  // Returns nothing if no rate of the encoding is described.
  std::optional<KernelRate> rate(Encoding encoding, bool int8_activations) const;
};

// A link that carries neurons and activations into the memory of a tier.
struct LinkDescription {
  std::string from = {};    // name of the tier that it leads from; empty: any
  std::string to;           // the tier's name
  double rate = 0;          // bytes a second
  uint64_t latency_ns = 0;  // of each message
  // true: it carries neurons while the disk reads; false: links and disk work one after the other.
  bool beside_disk = true;
};

struct MachineDescription {
  std::string path;
  DiskDescription disk;
  ProcessorDescription processor;
  std::vector<LinkDescription> links = {};
  std::map<std::string, UnitDescription> units = {};  // by the tier whose agents compute on them

  // Returns the first link that leads to the tier; nothing if there is none.
  std::optional<LinkDescription> link_to(const std::string& tier) const;
  // Returns the link between two tiers, or between memories of one; else one that leads there from any tier.
  // Nothing if the processor copies.
  std::optional<LinkDescription> link(const std::string& from, const std::string& to) const;
  // Returns NULL if the tier's agents compute on the processor.
  const UnitDescription* unit(const std::string& tier) const;
};

// Returns a machine without measured values: a run's counts of fetches are valid, its times are meaningless.
MachineDescription any_machine();

// `name`: of a file in configs/hardware, or a file's path. Errors name file, key and the expected value:
// those of read_machine_file; invalid_argument.
Result<MachineDescription> read_machine(const std::string& name);

}  // namespace tierd
