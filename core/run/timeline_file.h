// The timeline of a run, and the file that it is written to at the end.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "core/base/result.h"
#include "core/watch/timeline/chrome.h"
#include "core/watch/timeline/recorder.h"
#include "core/watch/timeline/timeline.h"

namespace tierd {

class TimelineFile {
 public:
  // Writes under another name until the file is complete, so that a run that dies leaves no partial file;
  // sets `names.start_ns`. Error: io_error.
  static Result<std::unique_ptr<TimelineFile>> create(const std::string& path, TimelineNames names,
                                                      const Clock& clock);
  ~TimelineFile();

  KernelObserver& observer() { return recorder_; }
  const Timeline& timeline() const { return timeline_; }

  // Replaces a file of that name. Does nothing if it was called before. Error: io_error.
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  TimelineFile(std::string path, std::string unfinished, std::FILE* file, TimelineNames names,
               const Clock& clock);

  std::string path_;
  std::string unfinished_;
  std::unique_ptr<std::FILE, Close> file_;  // NULL: finished
  TimelineNames names_;
  Timeline timeline_;
  TimelineRecorder recorder_;
};

}  // namespace tierd
