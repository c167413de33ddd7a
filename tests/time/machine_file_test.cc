#include "core/time/machine_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/time/description_file.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class MachineFiles : public DescriptionFile {
 protected:
  std::string based_on(const std::string& base, const std::string& text = "") const {
    return write("base = \"" + base + "\"\n" + text, "derived");
  }
  static std::string refused(const std::string& path) {
    const auto file = read_machine_file(path);
    return file.ok() ? "accepted" : file.error().line();
  }
};

TEST_F(MachineFiles, TablesAreOneAndValuesAreReplaced) {
  const std::string base = write(std::string(kCoarseMachine) +
                                     "[[links]]\nto = \"gpu\"\nbytes_per_second = 1e9\nlatency_ns = 1\n"
                                     "[[links]]\nto = \"ndp\"\nbytes_per_second = 1e9\nlatency_ns = 1\n",
                                 "below");
  const std::string derived = based_on(base,
                                       "[dram]\nbytes_per_second = 5e9\n[units.gpu]\nkind = \"gpu\"\n"
                                       "bytes_per_second = 7e9\nflops = 1e12\nlaunch_ns = 0\n"
                                       "[[links]]\nto = \"gpu\"\nbytes_per_second = 2e9\nlatency_ns = 1\n");
  const auto machine = read_machine(derived);
  ASSERT_TRUE(machine.ok()) << machine.error().line();
  EXPECT_EQ(machine->path, derived);
  EXPECT_EQ(machine->processor.memory_rate, 5e9) << "replaced";
  EXPECT_EQ(machine->disk.latency_ns, 5830u * 32) << "taken over";
  EXPECT_NE(machine->unit("gpu"), nullptr) << "added";
  ASSERT_EQ(machine->links.size(), 1u) << "a list is replaced as a whole";
  EXPECT_EQ(machine->link_to("gpu")->rate, 2e9);
  // A third description based on the derived one.
  const auto third = read_machine(write("base = \"" + derived + "\"\n[units.gpu]\nflops = 3e12\n", "third"));
  ASSERT_TRUE(third.ok()) << third.error().line();
  EXPECT_EQ(std::get<GpuDescription>(third->unit("gpu")->device).flops, 3e12);
  EXPECT_EQ(third->processor.memory_rate, 5e9);
}

TEST_F(MachineFiles, ABaseThatIsNoneOrComesBackIsRefused) {
  EXPECT_THAT(refused(write("base = 3\n")),
              HasSubstr("'base' is not a string; the name of a description is expected"));
  EXPECT_THAT(refused(write("base = \"\"\n")), HasSubstr("'base' is not a string"));
  const std::string missing = refused(write("base = \"no-such\"\n"));
  EXPECT_THAT(missing, HasSubstr(path() + ": 'base': no-such: no such machine; known are"));
  EXPECT_THAT(refused(based_on(write("[flash\n", "broken"))), HasSubstr("'base': " + path("broken") + ":"));
  EXPECT_THAT(refused(based_on(path("derived"))), HasSubstr("' is its own base, directly or through others"));
  // A cycle over another file, and a cycle by another name of the same file.
  EXPECT_THAT(refused(write("base = \"" + based_on(path()) + "\"\n")),
              HasSubstr("' is its own base, directly or through others"));
  EXPECT_THAT(
      refused(based_on(testing::TempDir() + "/./" + path("derived").substr(testing::TempDir().size()))),
      HasSubstr("' is its own base, directly or through others"));
}

}  // namespace
}  // namespace tierd
