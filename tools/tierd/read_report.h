// The part of a report on the flash: what was read, whether decode reads more and more, and how well reading
// hides behind computing.
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

// Bytes that the system has read from disks for this process, by its own count (/proc/self/io); 0 where it
// does not say. What comes from the page cache is not in it.
uint64_t system_read_bytes();

// What decode steps have read: per step, and the rate while something was being read.
void add_reads(nlohmann::json& decode, const ReadCounts& before, const ReadCounts& after);

// Whether decode reads more and more, or less and less, once its beginning is over.
nlohmann::json trend_json(const std::vector<uint64_t>& read_bytes);
// "284 MB a step after the first 16, -12 kB (+-9 kB) from step to step".
std::string trend_text(const nlohmann::json& trend);

// How well reading hides behind computing, per decode step.
nlohmann::json pipeline_json(const Timeline& timeline);
std::string pipeline_text(const nlohmann::json& p);

}  // namespace tierd
