#include "tools/lab/sweep/gnuplot_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tierd {
namespace {

using XAxis = Picture::XAxis;
using Line = Picture::Line;
using Mark = Picture::Mark;

struct ByteUnit {
  const char* name;
  double bytes;
};
ByteUnit unit_for(double most_bytes) {
  if (most_bytes >= 1e9) return {"GB", 1e9};
  if (most_bytes >= 1e6) return {"MB", 1e6};
  return {"kB", 1e3};
}

// gnuplot takes text between single quotes literally.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out += '\'';
    out += static_cast<unsigned char>(c) < ' ' || c == '\x7f' ? ' ' : c;
  }
  return out + "'";
}

// Colours that can be distinguished without red and green, and in print.
constexpr const char* kCompute = "#0072b2";
constexpr const char* kStall = "#e69f00";
constexpr const char* kManagement = "#999999";
constexpr const char* kMemory = "#000000";
constexpr std::array kLines = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};

const char* terminal(PlotFile::Kind kind) {
  switch (kind) {
    case PlotFile::Kind::png:
      return "pngcairo size 1400,1300 font 'Sans,23' linewidth 2.5";
    case PlotFile::Kind::pdf:
      return "pdfcairo size 5.6in,5.2in font 'Sans,10' linewidth 1.2";
    case PlotFile::Kind::svg:
    case PlotFile::Kind::script:
      break;
  }
  return "svg size 700,650 font 'Helvetica,13' linewidth 1.2 background rgb 'white'";
}

class Script {
 public:
  Script(const Picture& picture, PlotFile::Kind kind)
      : picture_(picture),
        memory_(unit_for(most([](const Mark& m) { return m.memory_bytes; }))),
        flash_(unit_for(most([](const Mark& m) { return m.flash_bytes; }))) {
    if (picture.axis == XAxis::memory) x_unit_ = unit_for(most([](const Mark& m) { return m.x; }));
    add("# gnuplot FILE.gp > FILE.svg");
    add("set terminal {} noenhanced", terminal(kind));
    add("# {}; ms of a token, of its fastest and slowest block, compute, flash, management; memory in {}, "
        "flash in {}",
        picture.axis == XAxis::memory ? x_unit_.name : "value", memory_.name, flash_.name);
    for (size_t i = 0; i < picture.lines.size(); ++i) data(i);
    add("set multiplot title {}", quoted(picture.title));
    add("set lmargin at screen 0.14");
    add("set rmargin at screen 0.86");
    add("set border linewidth 0.8");
    add("set tics nomirror");
    add("set grid ytics linecolor rgb '#dddddd' linewidth 0.8");
    add("set pointintervalbox 0");  // whiskers are not interrupted
    add("set key at graph 0.5, graph 1.02 center bottom {} samplen 1.2",
        picture.lines.size() == 1 ? "vertical maxrows 1" : "horizontal");
    add("set yrange [0:*]");
    x_range();
    x_tics(false);
    const bool parts = picture.lines.size() == 1;
    const bool bars = parts && (picture.axis == XAxis::names || evenly_spaced());
    panel(0.51, 0.86);
    add("set ylabel 'ms a token'");
    if (!parts) {
      times();
    } else {
      stack(bars ? "boxes" : "filledcurves y1=0");
    }
    below();
    add("unset multiplot");
  }
  std::string text() && { return std::move(text_); }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }

  void data(size_t line) {
    add("$line{} << EOD", line);
    for (const Mark& m : picture_.lines[line].marks) {
      add("{:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}", m.x / x_unit_.bytes, m.ms,
          m.least_ms, m.most_ms, m.compute_ms, m.flash_ms, m.management_ms, m.memory_bytes / memory_.bytes,
          m.flash_bytes / flash_.bytes);
    }
    add("EOD");
  }

  // Returns the places of the marks of all lines on the x axis, ascending, each once.
  std::vector<double> places() const {
    std::vector<double> xs;
    for (const Line& line : picture_.lines) {
      for (const Mark& mark : line.marks) xs.push_back(mark.x / x_unit_.bytes);
    }
    std::sort(xs.begin(), xs.end());
    xs.erase(std::unique(xs.begin(), xs.end()), xs.end());
    return xs;
  }
  double least_gap() const {
    const std::vector<double> xs = places();
    double gap = xs.size() < 2 ? 1 : xs.back() - xs.front();
    for (size_t i = 1; i < xs.size(); ++i) gap = std::min(gap, xs[i] - xs[i - 1]);
    return gap;
  }
  bool evenly_spaced() const {
    const std::vector<double> xs = places();
    if (picture_.axis != XAxis::numbers || xs.size() < 2) return picture_.axis == XAxis::numbers;
    const double mean = (xs.back() - xs.front()) / static_cast<double>(xs.size() - 1);
    return least_gap() > 0.9 * mean;
  }

  void x_range() {
    const std::vector<double> xs = places();
    const double gap = least_gap();
    const bool each = picture_.axis == XAxis::names || evenly_spaced();
    const double room = each ? gap : 0.06 * std::max(xs.back() - xs.front(), gap);
    add("set boxwidth {:.6g}", 0.6 * gap);
    add("set xrange [{:.6g}:{:.6g}]", xs.front() - room, xs.back() + room);
  }
  // `named`: only the lower panel shows names; both panels have the same marks.
  void x_tics(bool named) {
    if (picture_.axis == XAxis::memory || (picture_.axis == XAxis::numbers && !evenly_spaced())) {
      add("set format x {}", named ? "'% h'" : "''");
      return;
    }
    std::string tics;
    for (const double x : places())
      tics += fmt::format("{}{} {:.6g}", tics.empty() ? "" : ", ", named ? quoted(value_at(x)) : "''", x);
    add("set xtics ({})", tics);
  }
  std::string value_at(double x) const {
    for (const Line& line : picture_.lines) {
      for (const Mark& mark : line.marks) {
        if (mark.x == x) return mark.value;
      }
    }
    return "";
  }

  void panel(double bottom, double top) {
    add("set bmargin at screen {}", bottom);
    add("set tmargin at screen {}", top);
  }

  // Stacks the parts of the time: the sum of all is drawn first, and the next ones cover it.
  void stack(const char* shape) {
    name_marks();
    std::string plots;
    const auto part = [&](const char* sum, const char* colour, const char* title) {
      plots += fmt::format(
          "$line0 using 1:({}) with {} fillcolor rgb '{}' fillstyle solid border linecolor rgb 'black' title "
          "'{}', ",
          sum, shape, colour, title);
    };
    part("$5+$6+$7", kManagement, "management");
    part("$5+$6", kStall, "flash");
    part("$5", kCompute, "compute");
    plots += whiskers(0, "black");
    plots.resize(plots.size() - 2);  // the last comma
    add("plot {}", plots);
  }
  // Writes the values of a budget beside their marks.
  void name_marks() {
    if (picture_.axis != XAxis::memory) return;
    for (const Mark& mark : picture_.lines.front().marks) {
      add("set label {} at {:.6g},{:.6g} center offset 0,0.9", quoted(mark.value), mark.x / x_unit_.bytes,
          mark.most_ms);
    }
  }

  // Marks over names are not joined by lines, and marks of several lines are shown side by side.
  std::string x_of(size_t line) const {
    if (picture_.axis != XAxis::names) return "1";
    const double from_middle = static_cast<double>(line) - static_cast<double>(picture_.lines.size() - 1) / 2;
    return fmt::format("($1+{:.3g})", 0.1 * from_middle);
  }
  std::string style(const char* colour, bool dashed) const {
    return fmt::format("{} linecolor rgb '{}' linewidth 1.5 dashtype {} pointtype {} pointsize 0.8",
                       picture_.axis == XAxis::names ? "points" : "linespoints", colour, dashed ? 2 : 1,
                       dashed ? 6 : 7);
  }
  const char* colour(size_t line) const { return kLines[line % kLines.size()]; }

  // Draws a whisker from the fastest block to the slowest, if any mark has two blocks.
  std::string whiskers(size_t line, const char* in_colour) const {
    const std::vector<Mark>& marks = picture_.lines[line].marks;
    const bool spread = std::any_of(marks.begin(), marks.end(), [](const Mark& m) { return m.blocks > 1; });
    if (!spread) return "";
    return fmt::format("$line{} using {}:2:3:4 with yerrorbars linecolor rgb '{}' pointtype 0 notitle, ",
                       line, x_of(line), in_colour);
  }
  void times() {
    std::string plots;
    for (size_t i = 0; i < picture_.lines.size(); ++i) {
      plots +=
          fmt::format("{}{}$line{} using {}:2 with {} title {}", i == 0 ? "" : ", ", whiskers(i, colour(i)),
                      i, x_of(i), style(colour(i), false), quoted(picture_.lines[i].name));
    }
    add("plot {}", plots);
  }

  void below() {
    const bool one = picture_.lines.size() == 1;
    const bool memory = picture_.axis != XAxis::memory;
    panel(0.11, 0.42);
    x_tics(true);
    add("unset label");
    add("set xlabel {}", quoted(picture_.x_title + (memory ? "" : fmt::format(", {}", x_unit_.name))));
    add("set ylabel '{} from flash a token'", flash_.name);
    if (!one || !memory) add("set key off");
    if (memory) {
      add("set y2label '{} of memory in use{}'", memory_.name, one ? "" : " (open marks)");
      add("set y2tics");
      add("set y2range [0:*]");
    }
    std::string plots;
    for (size_t i = 0; i < picture_.lines.size(); ++i) {
      plots += fmt::format("{}$line{} using {}:9 with {} title 'from flash'", i == 0 ? "" : ", ", i, x_of(i),
                           style(one ? kStall : colour(i), false));
      if (!memory) continue;
      plots += fmt::format(", $line{} using {}:8 axes x1y2 with {} title 'memory in use (right)'", i, x_of(i),
                           style(one ? kMemory : colour(i), true));
    }
    add("plot {}", plots);
  }

  template <class Value>
  double most(Value value) const {
    double most = 0;
    for (const Line& line : picture_.lines) {
      for (const Mark& mark : line.marks) most = std::max(most, value(mark));
    }
    return most;
  }

  const Picture& picture_;
  const ByteUnit memory_;
  const ByteUnit flash_;
  ByteUnit x_unit_ = {"", 1};  // of an axis of memory
  std::string text_;
};

}  // namespace

std::string gnuplot_script(const Picture& picture, PlotFile::Kind kind) {
  return Script(picture, kind).text();
}

}  // namespace tierd
