// Where a picture goes, and gnuplot, which draws it.
#pragma once

#include <string>

#include "core/base/result.h"

namespace tierd {

class PlotFile {
 public:
  enum class Kind { svg, png, pdf, script };

  // Nothing is written yet, but what would keep that from working later is found: another ending than .svg,
  // .png, .pdf and .gp, a folder that cannot be written to, gnuplot that is not installed (a script needs
  // none). Errors name the file.
  static Result<PlotFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  Kind kind() const { return kind_; }

  // The file, whole or not at all. `script` draws to its standard output. Errors: io_error; internal with
  // what gnuplot says.
  Status write(const std::string& script) const;

 private:
  PlotFile(std::string path, Kind kind) : path_(std::move(path)), kind_(kind) {}

  std::string path_;
  Kind kind_;
};

}  // namespace tierd
