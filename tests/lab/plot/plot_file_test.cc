#include "tools/lab/plot/plot_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/base/temp_folder.h"
#include "tests/formats/files.h"

namespace tierd {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Plot : public testing::Test {
 protected:
  void SetUp() override { path_ = std::getenv("PATH"); }
  void TearDown() override { setenv("PATH", path_.c_str(), 1); }

  static std::string refusal(const std::string& path) {
    const auto file = PlotFile::open(path);
    EXPECT_FALSE(file.ok()) << path;
    return file.ok() ? "" : file.error().line();
  }
  std::string path(const char* name) const { return folder_.path() + "/" + name; }
  // Installs a fake gnuplot on $PATH that runs this shell script.
  void install(const std::string& script) {
    const std::string program = folder_.write("gnuplot", "#!/bin/sh\n" + script);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    setenv("PATH", (folder_.path() + ":" + path_).c_str(), 1);
  }

  TempFolder folder_;
  std::string path_;
};

TEST_F(Plot, WhatCannotWorkIsFoundAtOnce) {
  install("");
  EXPECT_THAT(refusal(path("a.jpg")), HasSubstr("expected a name that ends in .svg, .png, .pdf or .gp"));
  EXPECT_THAT(refusal("svg"), HasSubstr("expected a name"));
  EXPECT_THAT(refusal("/no/such/folder/a.svg"), HasSubstr("its folder: No such file"));
  std::filesystem::create_directory(path("b.svg"));
  EXPECT_THAT(refusal(path("b.svg")), HasSubstr("is a folder"));
  EXPECT_TRUE(PlotFile::open(path("a.svg")).ok());
}

TEST_F(Plot, WithoutGnuplotItsPackageIsNamed) {
  setenv("PATH", folder_.path().c_str(), 1);
  EXPECT_THAT(refusal(path("a.svg")), HasSubstr("apt-get install gnuplot-nox"));
  const auto script = PlotFile::open(path("a.gp"));
  ASSERT_TRUE(script.ok());
  ASSERT_TRUE(script->write("plot x\n").ok());
  EXPECT_EQ(file_text(path("a.gp")), "plot x\n");
}

TEST_F(Plot, TheScriptGoesInAndThePictureComesOut) {
  install("echo \"$@\"; cat; echo; echo drawn\n");
  const auto file = PlotFile::open(path("a'; b.svg"));
  ASSERT_TRUE(file.ok());
  const Status written = file->write("plot x");
  ASSERT_TRUE(written.ok()) << written.error().line();
  EXPECT_EQ(file_text(file->path()), "--default-settings -\nplot x\ndrawn\n");
  EXPECT_FALSE(std::filesystem::exists(file->path() + ".part"));
}

TEST_F(Plot, AFailureLeavesWhatWasThere) {
  install("echo 'line 1: no such terminal' >&2; exit 1\n");
  folder_.write("a.svg", "old");
  const auto file = PlotFile::open(path("a.svg"));
  ASSERT_TRUE(file.ok());
  const Status written = file->write(std::string(1 << 20, 'x'));  // more than a pipe holds
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(written.error().line(), StartsWith("gnuplot: drew nothing: line 1: no such terminal"));
  EXPECT_EQ(file_text(path("a.svg")), "old");
  EXPECT_FALSE(std::filesystem::exists(path("a.svg.part")));
}

}  // namespace
}  // namespace tierd
