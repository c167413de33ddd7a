#include "tools/lab/reproduce/picture.h"

#include <fmt/format.h>

#include <vector>

namespace tierd {
namespace {

struct Mark {
  std::string name;
  std::string kind;
  double ratio = 1;            // ours over the paper's
  double least = 1, most = 1;  // the accepted range
};

std::vector<Mark> marks_of(const ReproducedFigures& report) {
  std::vector<Mark> marks;
  for (const PaperFigures& paper : report.papers) {
    for (const RowFigures& row : paper.rows) {
      if (!row.paper || !row.ours || *row.paper == 0) continue;
      const double tolerance = row.tolerance_percent / 100;
      marks.push_back({.name = row.what,
                       .kind = std::string(name(row.kind)),
                       .ratio = *row.ours / *row.paper,
                       .least = row.least ? *row.least / *row.paper : 1 - tolerance,
                       .most = row.most ? *row.most / *row.paper : 1 + tolerance});
    }
  }
  return marks;
}

// gnuplot interprets escapes between double quotes; the characters that could begin one are dropped.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return out + "\"";
}

std::string terminal(PlotFile::Kind kind, size_t rows) {
  const size_t height = 110 + 18 * rows;
  switch (kind) {
    case PlotFile::Kind::png:
      return fmt::format("pngcairo size 1800,{} font 'Sans,19' linewidth 2", 2 * height);
    case PlotFile::Kind::pdf:
      return fmt::format("pdfcairo size 9in,{}in font 'Sans,10'", 0.01 * static_cast<double>(height));
    case PlotFile::Kind::svg:
    case PlotFile::Kind::script:
      break;
  }
  return fmt::format("svg size 900,{} font 'Helvetica,12' background rgb 'white'", height);
}

}  // namespace

std::string picture_script(const ReproducedFigures& report, PlotFile::Kind kind) {
  const std::vector<Mark> marks = marks_of(report);
  std::string text = "# gnuplot FILE.gp > FILE.svg\n";
  text += fmt::format("set terminal {} noenhanced\n", terminal(kind, marks.size()));
  // Colours that can be distinguished without red and green, and in print.
  constexpr const char* kKinds[][3] = {{"P", "#0072b2", "a prediction"},
                                       {"I", "#999999", "the given figures contain it"},
                                       {"F", "#e69f00", "constants were fitted"},
                                       {"N", "#d55e00", "cannot be reproduced"}};
  std::string plots;
  for (const auto& [letter, colour, meaning] : kKinds) {
    text += fmt::format("${} << EOD\n", letter);
    size_t n = 0;
    for (size_t i = 0; i < marks.size(); ++i) {
      if (marks[i].kind != letter) continue;
      text += fmt::format("{:.6g} {} {:.6g} {:.6g} {}\n", marks[i].ratio, marks.size() - i, marks[i].least,
                          marks[i].most, quoted(marks[i].name));
      ++n;
    }
    text += "EOD\n";
    if (n == 0) continue;
    plots += fmt::format(
        "{}${} using 1:2:3:4:ytic(5) with xerrorbars linecolor rgb '{}' pointtype 7 pointsize 0.7 title '{}'",
        plots.empty() ? "" : ", \\\n  ", letter, colour, meaning);
  }
  text += "set title 'ours over the paper''s, and what it may be'\n";
  text += "set logscale x 2\nset xrange [0.3:3]\nset xtics (0.33, 0.5, 0.7, 1, 1.4, 2, 3)\n";
  text += fmt::format("set yrange [0:{}]\n", marks.size() + 1);
  text += "set grid xtics linecolor rgb '#dddddd'\nset border 1\nset tics nomirror scale 0\n";
  text += "set arrow from 1, graph 0 to 1, graph 1 nohead linecolor rgb '#000000'\n";
  text +=
      "set lmargin at screen 0.55\nset rmargin at screen 0.97\nset bmargin 6\nset key at screen 0.98, screen "
      "0.02 right bottom horizontal maxrows 2 samplen 1\n";
  if (plots.empty())
    return text + "set label 'no row has a figure of the paper' at graph 0.5, 0.5\nplot -1 notitle\n";
  return text + "plot " + plots + "\n";
}

}  // namespace tierd
