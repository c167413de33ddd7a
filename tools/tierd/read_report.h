// The part of a report on flash: reads, the trend of reads in decode, and the overlap of reading with
// computing.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/agent/counts.h"
#include "core/run/runtime.h"
#include "core/watch/timeline/timeline.h"

namespace tierd {

nlohmann::json flash_json(const Runtime& runtime, const ReadCounts& flash);
// "1200 reads of 26 kB for 4800 extents, 12 % in vain; 1.9 GB/s while busy".
std::string flash_text(const nlohmann::json& flash);

// Returns the bytes that the system has read from disks for this process (/proc/self/io), without hits of the
// page cache; 0 where the file is not available.
uint64_t system_read_bytes();

// Adds the reads of decode steps: per step, and the rate while reads were in flight.
void add_reads(nlohmann::json& decode, const ReadCounts& before, const ReadCounts& after);

// Returns the trend of bytes read by decode steps after the first ones: growing, falling or constant.
nlohmann::json trend_json(const std::vector<uint64_t>& read_bytes);
// "284 MB a step after the first 16, -12 kB (+-9 kB) from step to step".
std::string trend_text(const nlohmann::json& trend);

// Returns the overlap of reading with computing, per decode step.
nlohmann::json pipeline_json(const Timeline& timeline);
std::string pipeline_text(const nlohmann::json& p);

}  // namespace tierd
