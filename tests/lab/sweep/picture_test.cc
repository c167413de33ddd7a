#include "tools/lab/sweep/gnuplot_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lab/sweep/known_sweep.h"

namespace tierd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Returns points of one key, in the given order.
SweepFigures sweep_of(const std::string& key, const std::vector<std::string>& values) {
  SweepFigures report{.run = run(), .sweep = {{key, values}}, .points = {}, .peer = {}};
  for (const std::string& value : values) {
    PointFigures& point = report.points.emplace_back();
    point.values = {{key, value}};
    point.run = run();
    point.run->budget.peak_bytes = 1'000'000'000 * report.points.size();
    point.tests = {test_figures(result(), kLayers)};
  }
  return report;
}

Picture picture(const SweepFigures& report) {
  auto made = picture_of(report);
  EXPECT_TRUE(made.ok());
  return made.ok() ? *made : Picture();
}

std::vector<double> places(const Picture& picture) {
  std::vector<double> xs;
  for (const Picture::Mark& mark : picture.lines.at(0).marks) xs.push_back(mark.x);
  return xs;
}

TEST(Picture, FiguresOfAPoint) {
  const Picture of = picture(sweep_of("cache.k", {"4"}));
  EXPECT_EQ(of.title, "llama-2-7b, tg10, commit abc");
  EXPECT_EQ(of.x_title, "cache.k");
  const Picture::Mark& mark = of.lines.at(0).marks.at(0);
  EXPECT_NEAR(mark.ms, 30.5e3 / 30, 1e-6);
  EXPECT_NEAR(mark.compute_ms + mark.flash_ms + mark.management_ms, mark.ms, 1e-6);
  EXPECT_DOUBLE_EQ(mark.least_ms, 800);
  EXPECT_DOUBLE_EQ(mark.most_ms, 1250);
  EXPECT_DOUBLE_EQ(mark.memory_bytes, 1.5e9);
  EXPECT_DOUBLE_EQ(mark.flash_bytes, 2e9);
}

TEST(Picture, NumbersSharesAndSizesAreNumbers) {
  EXPECT_THAT(places(picture(sweep_of("cache.k", {"6", "1", "2"}))), ElementsAre(1, 2, 6));
  const Picture shares = picture(sweep_of("cache.arena", {"10%", "5%"}));
  EXPECT_THAT(places(shares), ElementsAre(5, 10));
  EXPECT_EQ(shares.x_title, "cache.arena, %");
  const Picture sizes = picture(sweep_of("tiers.dram.staging", {"64 MB", "1GB"}));
  EXPECT_THAT(places(sizes), ElementsAre(0.064, 1));
  EXPECT_EQ(sizes.x_title, "tiers.dram.staging, GB");
  EXPECT_EQ(sizes.axis, Picture::XAxis::numbers);
}

TEST(Picture, NamesAreInTheirOrder) {
  const Picture of = picture(sweep_of("cache.name", {"static", "lru"}));
  EXPECT_EQ(of.axis, Picture::XAxis::names);
  EXPECT_THAT(places(of), ElementsAre(0, 1));
  EXPECT_EQ(of.lines[0].marks[1].value, "lru");
}

TEST(Picture, ABudgetStandsAtTheMemoryThatItCameTo) {
  const Picture of = picture(sweep_of("tiers.dram.capacity", {"50%", "6GB", "all"}));
  EXPECT_EQ(of.axis, Picture::XAxis::memory);
  EXPECT_THAT(places(of), ElementsAre(1e9, 2e9, 3e9));
}

TEST(Picture, ALineForEachValueOfTheSecondKeyWithoutWhatFailed) {
  const Picture of = picture(swept());
  ASSERT_EQ(of.lines.size(), 2u);
  EXPECT_EQ(of.lines[0].name, "cache.k 1");
  EXPECT_EQ(of.lines[0].marks.size(), 2u);
  EXPECT_EQ(of.lines[1].marks.size(), 1u);
}

TEST(Picture, OfNothing) {
  SweepFigures report = swept();
  report.points.erase(report.points.begin(), report.points.end() - 1);
  const auto of = picture_of(report);
  ASSERT_FALSE(of.ok());
  EXPECT_THAT(of.error().line(), HasSubstr("every point failed"));
}

TEST(GnuplotScript, AWindowIsStackedBars) {
  const std::string script =
      gnuplot_script(picture(sweep_of("cache.k", {"1", "2", "3"})), PlotFile::Kind::svg);
  EXPECT_THAT(script, HasSubstr("set terminal svg "));
  EXPECT_THAT(script, HasSubstr("\n$line0 << EOD\n1 1016.67 800 1250 610 305 101.667 1.5 2\n2 "));
  EXPECT_THAT(script, HasSubstr("set xtics ('' 1, '' 2, '' 3)\n"));
  EXPECT_THAT(script, HasSubstr("set xtics ('1' 1, '2' 2, '3' 3)\n"));
  EXPECT_THAT(script, HasSubstr("using 1:($5+$6+$7) with boxes"));
  EXPECT_THAT(script, HasSubstr("axes x1y2"));
  EXPECT_THAT(script, HasSubstr("set xlabel 'cache.k'\n"));
}

TEST(GnuplotScript, UnevenNumbersAreAreas) {
  const std::string script =
      gnuplot_script(picture(sweep_of("cache.k", {"1", "2", "64"})), PlotFile::Kind::png);
  EXPECT_THAT(script, HasSubstr("set terminal pngcairo "));
  EXPECT_THAT(script, HasSubstr("with filledcurves"));
  EXPECT_THAT(script, Not(HasSubstr("set xtics")));
}

TEST(GnuplotScript, TheMemoryLatencyCurveNamesItsBudgets) {
  const std::string script =
      gnuplot_script(picture(sweep_of("tiers.dram.capacity", {"50%", "75%"})), PlotFile::Kind::pdf);
  EXPECT_THAT(script, HasSubstr("set terminal pdfcairo "));
  EXPECT_THAT(script, HasSubstr("set label '50%' at 1,1250 "));
  EXPECT_THAT(script, HasSubstr("set xlabel 'memory, the peak of the budget, GB'\n"));
  EXPECT_THAT(script, Not(HasSubstr("y2")));
}

TEST(GnuplotScript, WhatComesFromOutsideIsTextAlone) {
  SweepFigures report = sweep_of("cache.name", {"it's", "a\nsystem('ls')\n`ls`"});
  report.run->model = "m'; system(\"ls\")";
  const std::string script = gnuplot_script(picture(report), PlotFile::Kind::svg);
  EXPECT_THAT(script, HasSubstr("set xtics ('it''s' 0, 'a system(''ls'') `ls`' 1)\n"));
  EXPECT_THAT(script, HasSubstr("set multiplot title 'm''; system(\"ls\"), tg10, commit abc'\n"));
  EXPECT_THAT(script, HasSubstr(" noenhanced\n"));
}

TEST(GnuplotScript, TwoKeysAreLines) {
  const std::string script = gnuplot_script(picture(swept()), PlotFile::Kind::svg);
  EXPECT_THAT(script, HasSubstr("title 'cache.k 1'"));
  EXPECT_THAT(script, HasSubstr("title 'cache.k 2'"));
  EXPECT_THAT(script, Not(HasSubstr("boxes ")));
}

}  // namespace
}  // namespace tierd
