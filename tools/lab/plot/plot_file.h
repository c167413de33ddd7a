// The output file of a picture, drawn by gnuplot.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

class PlotFile {
 public:
  enum class Kind { svg, png, pdf, script };

  // Writes nothing yet, but detects what would make a later write fail: an ending other than .svg, .png, .pdf
  // and .gp, a folder without write permission, a missing gnuplot (a script needs none). Errors name the
  // file.
  static Result<PlotFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  Kind kind() const { return kind_; }

  // Writes the file as a whole or not at all. `script` draws to standard output. Errors: io_error; internal
  // with gnuplot's error output.
  Status write(const std::string& script) const;

 private:
  PlotFile(std::string path, Kind kind) : path_(std::move(path)), kind_(kind) {}

  std::string path_;
  Kind kind_;
};

}  // namespace tierd
