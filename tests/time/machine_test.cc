#include "core/time/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

namespace tierd {
namespace {

using testing::HasSubstr;

class Descriptions : public testing::Test {
 protected:
  static std::string text() {
    return R"([flash]
latency_ns = 102400
check_bytes_per_second = 12000000000
[[flash.reads]]
read_bytes = 4096
depth = 1
random = 40000000
[[flash.reads]]
read_bytes = 1048576
depth = 64
random = 1900000000
[[flash.reads]]
read_bytes = 4096
depth = 64
random = 90000000
[dram]
bytes_per_second = 35000000000
[[compute.rates]]
encoding = "q4_0"
activations = "int8"
gemv_bytes_per_second = 30000000000
gemm_multiply_adds_per_second = 200000000000
[[compute.rates]]
encoding = "f32"
activations = "f32"
gemv_bytes_per_second = 40000000000
gemm_multiply_adds_per_second = 100000000000
)";
  }
  Result<MachineDescription> read(const std::string& text) const {
    std::ofstream(path_) << text;
    return read_machine(path_);
  }
  static std::string without(std::string text, const std::string& line) {
    const size_t begin = text.find(line);
    EXPECT_NE(begin, std::string::npos) << line;
    return text.erase(begin, text.find('\n', begin) + 1 - begin);
  }
  const std::string path_ = testing::TempDir() + "machine-" + std::to_string(::getpid()) + ".toml";
};

TEST_F(Descriptions, WhatIsWrittenIsRead) {
  const auto machine = read(text());
  ASSERT_TRUE(machine.ok()) << machine.error().line();
  EXPECT_EQ(machine->path, path_);
  EXPECT_EQ(machine->disk.latency_ns, 102'400u);
  EXPECT_EQ(machine->disk.check_rate, 1.2e10);
  const auto& points = machine->disk.reads.points();
  ASSERT_EQ(points.size(), 2u) << "those with the most in flight";
  EXPECT_EQ(points[0].bytes, 4096u);
  EXPECT_EQ(points[0].bytes_per_second, 9e7);
  EXPECT_EQ(points[1].bytes_per_second, 1.9e9);
  EXPECT_EQ(machine->processor.memory_rate, 3.5e10);
  EXPECT_EQ(machine->processor.rate(Encoding::q4_0, true)->gemv, 3e10);
  EXPECT_FALSE(machine->processor.rate(Encoding::q4_0, false).has_value());
  EXPECT_EQ(machine->processor.share(0.5).rate(Encoding::f32, false)->gemm, 5e10);
  EXPECT_EQ(machine->processor.share(0.5).memory_rate, 1.75e10);
}

// Papers omit these keys: then a disk reports each read by itself, and requests and copies take no time.
TEST_F(Descriptions, WhatReadsTakeOfAThreadIsOptional) {
  const auto plain = read(text());
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->disk.thread_ns, 0u);
  EXPECT_EQ(plain->disk.copy_rate, 0);
  EXPECT_EQ(plain->disk.round, 1u);
  EXPECT_EQ(plain->processor.rate(Encoding::f32, false)->columns, 0);
  const auto with = [&](const std::string& table, const std::string& line) {
    std::string described = text();
    const size_t begin = described.find(table) + table.size();
    return read(described.insert(begin, line));
  };
  const std::string flash = "[flash]\n", rates = "[[compute.rates]]\n";
  EXPECT_EQ(with(flash, "thread_ns = 3400\n")->disk.thread_ns, 3'400u);
  EXPECT_EQ(with(flash, "copy_bytes_per_second = 2e10\n")->disk.copy_rate, 2e10);
  EXPECT_EQ(with(flash, "round = 85\n")->disk.round, 85u);
  EXPECT_THAT(with(flash, "round = 0\n").error().line(), HasSubstr("'flash.round'"));
  const auto columns = with(rates, "columns_bytes_per_second = 2e10\n");
  EXPECT_EQ(columns->processor.rate(Encoding::q4_0, true)->columns, 2e10);
  EXPECT_EQ(columns->processor.share(0.5).rate(Encoding::q4_0, true)->columns, 1e10);
}

TEST_F(Descriptions, LinksAreThoseToTiers) {
  EXPECT_FALSE(read(text())->link_to("gpu").has_value());
  const std::string links = "[[links]]\nto = \"gpu\"\nbytes_per_second = 25e9\nlatency_ns = 9000\n";
  const auto machine = read(text() + links);
  ASSERT_TRUE(machine.ok()) << machine.error().line();
  EXPECT_EQ(machine->link_to("gpu")->rate, 25e9);
  EXPECT_EQ(machine->link_to("gpu")->latency_ns, 9000u);
  EXPECT_FALSE(machine->link_to("dram").has_value());
  EXPECT_TRUE(machine->link_to("gpu")->beside_disk);
  EXPECT_FALSE(read(text() + links + "beside_disk = false\n")->link_to("gpu")->beside_disk);
  const auto says = [&](const std::string& wrong) { return read(text() + wrong).error().line(); };
  EXPECT_THAT(says(without(links, "to = ")), HasSubstr("'links.to' is missing; a string is expected"));
  EXPECT_THAT(says(without(links, "bytes_per")), HasSubstr("'links.bytes_per_second' is missing"));
  EXPECT_THAT(says(without(links, "latency")), HasSubstr("'links.latency_ns' is missing"));
  EXPECT_THAT(says(links + "beside_disk = 1\n"),
              HasSubstr("'links.beside_disk' is 1; true or false is expected"));
  EXPECT_THAT(says("[links]\nto = \"gpu\"\n"),
              HasSubstr("'links' is of type table; a list of tables [[links]] is expected"));
}

TEST_F(Descriptions, WhatIsMissingOrWrongIsNamed) {
  struct Case {
    std::string text;
    const char* says;
  };
  std::string negative = text(), slow = text(), unknown = text(), activations = text();
  negative.replace(negative.find("latency_ns = "), 13, "latency_ns = -");
  const std::string rate = "check_bytes_per_second = ";
  slow.insert(slow.find(rate) + rate.size(), "1e-300 # ");
  unknown.replace(unknown.find("\"q4_0\""), 6, "\"q3_9\"");
  activations.replace(activations.find("\"int8\""), 6, "\"int7\"");
  const Case cases[] = {
      {without(text(), "check_bytes_per_second"),
       "'flash.check_bytes_per_second' is missing; a number from 1000 to 1e+18 is expected"},
      {negative, "'flash.latency_ns' is -"},
      {slow, "'flash.check_bytes_per_second' is 1e-300; a number from 1000 to 1e+18 is expected"},
      {"[machine]\n", "is missing; a table is expected"},
      {unknown, "'compute.rates.encoding' is 'q3_9'; one of f32"},
      {activations, "'compute.rates.activations' is 'int7'; int8 or f32"},
      {"[flash\n", "machine-"},
  };
  for (const Case& wrong : cases) {
    const auto machine = read(wrong.text);
    ASSERT_FALSE(machine.ok()) << wrong.says;
    EXPECT_EQ(machine.code(), Code::invalid_argument);
    EXPECT_THAT(machine.error().line(), HasSubstr(wrong.says));
    EXPECT_THAT(machine.error().line(), HasSubstr(path_));
  }
  EXPECT_EQ(read_machine("no-such-machine").code(), Code::not_found);
}

}  // namespace
}  // namespace tierd
