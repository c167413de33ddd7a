#include "core/watch/energy/power_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

#include "core/time/machine_file.h"
#include "tests/base/temp_folder.h"

namespace tierd {
namespace {

using testing::HasSubstr;

class Powers : public testing::Test {
 protected:
  static std::string text() {
    return R"([energy]
grams_per_kwh = 400
[energy.processor]
watts = 200
cores = 32
embodied_kg = 20
life_years = 4
[energy.gpu]
watts = 700
[energy.dram]
watts_per_gb = 0.25
embodied_kg_per_gb = 0.5
life_years = 5
[energy.flash]
watts = 6.5
)";
  }
  std::string file(const std::string& text, const std::string& name = "box") const {
    const std::string path = folder_.path() + "/" + name + ".toml";
    std::ofstream(path) << text;
    return path;
  }
  static std::string with(std::string text, const std::string& line, const std::string& other) {
    const size_t begin = text.find(line);
    EXPECT_NE(begin, std::string::npos) << line;
    return text.replace(begin, line.size(), other);
  }
  const TempFolder folder_;
};

TEST_F(Powers, WhatIsWrittenIsRead) {
  const auto power = read_power(file(text()));
  ASSERT_TRUE(power.ok()) << power.error().line();
  EXPECT_EQ(power->path, folder_.path() + "/box.toml");
  EXPECT_EQ(power->grams_per_kwh, 400);
  EXPECT_EQ(power->processor.watts, 200);
  EXPECT_EQ(power->processor_cores, 32u);
  EXPECT_EQ(power->processor.embodied_kg, 20);
  EXPECT_EQ(power->processor.life_years, 4);
  EXPECT_EQ(power->gpu->watts, 700);
  EXPECT_EQ(power->gpu->embodied_kg, 0);
  EXPECT_EQ(power->dram.watts, 0.25);
  EXPECT_EQ(power->dram.embodied_kg, 0.5);
  EXPECT_EQ(power->flash.watts, 6.5);
  const auto without_gpu = read_power(file(with(text(), "[energy.gpu]\nwatts = 700\n", "")));
  ASSERT_TRUE(without_gpu.ok()) << without_gpu.error().line();
  EXPECT_FALSE(without_gpu->gpu.has_value());
}

TEST_F(Powers, WhatIsMissingOrWrongIsNamed) {
  struct Case {
    std::string line, other;
    const char* says;
  };
  const Case cases[] = {
      {"grams_per_kwh = 400", "", "'energy.grams_per_kwh' is missing; a number from 0 to 100000 is expected"},
      {"grams_per_kwh = 400", "grams_per_kwh = -1", "'energy.grams_per_kwh' is -1; a number from 0"},
      {"grams_per_kwh = 400", "grams_per_kwh = \"much\"", "'energy.grams_per_kwh' is 'much'; a number"},
      {"grams_per_kwh = 400", "grams_per_kwh = nan", "'energy.grams_per_kwh' is nan; a number"},
      {"watts = 6.5", "wats = 6.5", "'energy.flash.watts' is missing"},
      {"watts = 6.5", "watts = inf", "'energy.flash.watts' is inf; a number from 0 to 1000000"},
      {"cores = 32\n", "", "'energy.processor.cores' is missing; a whole number from 1 to 65536"},
      {"cores = 32", "cores = 0", "'energy.processor.cores' is 0; a whole number from 1"},
      {"life_years = 4\n", "", "'energy.processor.life_years' is missing; a number from 0.01 to 1000"},
      {"life_years = 4", "life_years = 0", "'energy.processor.life_years' is 0; a number from 0.01"},
      {"embodied_kg = 20\n", "", "'energy.processor.embodied_kg' is missing"},
      {"watts_per_gb", "watts", "'energy.dram.watts_per_gb' is missing"},
      {"[energy.flash]", "[energy.ssd]", "'energy.flash' is missing; a table is expected"},
      {"[energy.flash]\nwatts = 6.5\n", "", "'energy.flash' is missing; a table is expected"},
      {"watts = 6.5", "watts = 6.5\nwats = 6.5",
       "'energy.flash.wats' is unknown; known are watts, embodied_kg, life_years"},
      {"grams_per_kwh = 400", "grams_per_kwh = 400\nssd = 2",
       "'energy.ssd' is unknown; known are grams_per_kwh, processor, gpu, dram, flash"},
      {"[energy.flash]\nwatts", "[energy.other", "box.toml:"},
      {"grams_per_kwh = 400", "grams_per_kwh = 400\nflash = 2", "box.toml:"},
  };
  for (const Case& wrong : cases) {
    const auto power = read_power(file(with(text(), wrong.line, wrong.other)));
    ASSERT_FALSE(power.ok()) << wrong.says;
    EXPECT_EQ(power.code(), Code::invalid_argument);
    EXPECT_THAT(power.error().line(), HasSubstr(wrong.says));
    EXPECT_THAT(power.error().line(), HasSubstr(folder_.path()));
  }
  EXPECT_THAT(read_power(file("energy = 5\n")).error().line(),
              HasSubstr("'energy' is 5; a table is expected"));
  EXPECT_THAT(read_power(file("[flash]\n")).error().line(), HasSubstr("has no table [energy]"));
  EXPECT_EQ(read_power("no-such-machine").code(), Code::not_found);
}

TEST_F(Powers, WhichDescriptionGoes) {
  const std::string box = file(text()), other = file(with(text(), "400", "30"), "other");
  const std::string no_energy = file("[flash]\nlatency_ns = 5\n", "timed"),
                    wrong = file("energy = 5\n", "wrong");
  EXPECT_EQ(choose_power(box, other)->grams_per_kwh, 400) << "the one that is named";
  EXPECT_EQ(choose_power("", other)->grams_per_kwh, 30) << "that of the machine";
  for (const std::string& machine : {std::string(), no_energy, std::string("no-such-machine")}) {
    const auto power = choose_power("", machine);
    ASSERT_TRUE(power.ok()) << power.error().line();
    EXPECT_THAT(power->path, testing::EndsWith("hardware/rtx3090-box.toml")) << machine;
  }
  EXPECT_EQ(choose_power(no_energy, "").code(), Code::not_found);
  EXPECT_EQ(choose_power("", wrong).code(), Code::invalid_argument);
}

TEST(ShippedPower, IsAllReadWhereAMachineHasIt) {
  for (const std::string& name : toml_names(machines_folder())) {
    const auto power = read_power(name);
    EXPECT_TRUE(power.ok() || power.code() == Code::not_found) << power.error().line();
  }
}

// A description takes over its base's power.
TEST(ShippedPower, IsTakenOverFromABase) {
  const std::string path = testing::TempDir() + "power-base-" + std::to_string(::getpid()) + ".toml";
  std::ofstream(path) << "base = \"rtx3090-box\"\n[energy]\ngrams_per_kwh = 41\n";
  for (const std::string& energy : {path, std::string()}) {
    const auto power = choose_power(energy, path);
    ASSERT_TRUE(power.ok()) << power.error().line();
    EXPECT_EQ(power->grams_per_kwh, 41);
    EXPECT_EQ(power->gpu->watts, 350);
  }
}

}  // namespace
}  // namespace tierd
