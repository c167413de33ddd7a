// Writes a machine's description to a file of the test.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>
#include <string>

#include "core/time/machine.h"

namespace tierd {

// A disk, a memory and a processor, described coarsely.
inline constexpr const char* kCoarseMachine = R"([flash]
t0_ns = 5830
bytes_per_second = 11.25e9
cap_bytes_per_second = 6.1e9
depth = 32
check_bytes_per_second = 1e18
[dram]
bytes_per_second = 400e9
[compute]
bytes_per_second = 200e9
flops = 400e9
)";

class DescriptionFile : public testing::Test {
 protected:
  std::string path(const std::string& name = "machine") const {
    return testing::TempDir() + name + "-" + std::to_string(::getpid()) + ".toml";
  }
  std::string write(const std::string& text, const std::string& name = "machine") const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  Result<MachineDescription> read(const std::string& text) const { return read_machine(write(text)); }
  std::string refused(const std::string& text) const {
    const auto machine = read(text);
    return machine.ok() ? "accepted" : machine.error().line();
  }
};

}  // namespace tierd
