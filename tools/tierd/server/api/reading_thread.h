// A thread that parses and tokenizes long bodies (megabytes), so that the server's thread keeps answering.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

#include "tools/tierd/work_desk.h"

namespace tierd {

class ReadingThread {
 public:
  // `most`: the largest number of waiting works.
  explicit ReadingThread(size_t most);
  // Finishes the work that has begun, and drops the rest.
  ~ReadingThread();
  ReadingThread(const ReadingThread&) = delete;
  ReadingThread& operator=(const ReadingThread&) = delete;

  // [any thread] Returns false where `most` works wait already.
  bool try_leave(WorkDesk::Work work) { return desk_.try_leave(std::move(work)); }

 private:
  void read();

  WorkDesk desk_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace tierd
