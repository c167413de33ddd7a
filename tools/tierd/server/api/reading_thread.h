// Reads what may take long, megabytes of JSON or of a prompt, so that the server's thread goes on answering.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "tools/tierd/work_desk.h"

namespace tierd {

class ReadingThread {
 public:
  // `most`: what may wait for it.
  explicit ReadingThread(size_t most);
  // What it has begun is finished; the rest is let go of.
  ~ReadingThread();
  ReadingThread(const ReadingThread&) = delete;
  ReadingThread& operator=(const ReadingThread&) = delete;

  // [any thread] False: as much as may waits already.
  bool try_leave(WorkDesk::Work work) { return desk_.try_leave(std::move(work)); }

 private:
  void read();

  WorkDesk desk_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace tierd
