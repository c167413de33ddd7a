// Reads a trace, event by event; the file is untrusted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/result.h"
#include "core/watch/trace/event.h"
#include "core/watch/trace/header.h"

namespace tierd {

class TraceReader {
 public:
  // Errors: those of File; corrupt, naming file and offset; unsupported for another version.
  static Result<TraceReader> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const TraceHeader& header() const { return header_; }

  // Returns the next event, or NULL after the last one and after an error.
  const Event* peek();
  // Skips the event that peek() returned.
  void next() { ++at_; }
  // Returns the error of peek(), for example a damaged block.
  const Status& status() const { return status_; }
  // Returns, after the last event, whether the file ends as a complete trace does. Otherwise a crash or a
  // full disk cut it off.
  bool whole() const { return whole_; }
  // Returns the number of events before the present one.
  uint64_t position() const { return before_block_ + at_; }
  // Returns to the first event.
  void rewind();

 private:
  TraceReader(File file, TraceHeader header, uint64_t first_block)
      : file_(std::move(file)), header_(std::move(header)), first_block_(first_block), offset_(first_block) {}
  bool read_block();

  File file_;
  TraceHeader header_;
  uint64_t first_block_;  // offset
  uint64_t offset_;       // of the next block
  std::vector<Event> block_;
  size_t at_ = 0;              // in block_
  uint64_t before_block_ = 0;  // events
  bool ended_ = false;
  bool whole_ = false;
  Status status_;
};

}  // namespace tierd
