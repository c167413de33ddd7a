// An invented machine: a disk of 100 MB/s, and a processor that multiplies 1 GB/s of any weights.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <string>

#include "core/model/layout/encoding.h"

namespace tierd {

inline void write_machine(const std::string& path) {
  std::string text = R"([flash]
latency_ns = 50000
check_bytes_per_second = 5e9
reads = [{ read_bytes = 4096, depth = 32, random = 50e6 }, { read_bytes = 1048576, depth = 32, random = 100e6 }]
[dram]
bytes_per_second = 2e9
)";
  for (const Encoding encoding : kAllEncodings) {
    for (const char* activations : {"f32", "int8"}) {
      text += fmt::format(
          "[[compute.rates]]\nencoding = \"{}\"\nactivations = \"{}\"\ngemv_bytes_per_second = 1e9\n"
          "gemm_multiply_adds_per_second = 4e9\n",
          name(encoding), activations);
    }
  }
  std::ofstream(path) << text;
}

}  // namespace tierd
