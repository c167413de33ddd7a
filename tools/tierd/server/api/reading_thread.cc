#include "tools/tierd/server/api/reading_thread.h"

#include <chrono>

namespace tierd {

ReadingThread::ReadingThread(size_t most) : desk_(most), thread_([this] { read(); }) {}

ReadingThread::~ReadingThread() {
  ends_ = true;
  desk_.leave([] {});
  thread_.join();
}

void ReadingThread::read() {
  while (!ends_) {
    for (WorkDesk::Work& work : desk_.take()) {
      if (ends_) return;
      work();
      work = nullptr;  // frees the body that it has read
    }
    desk_.wait(std::chrono::hours(1));
  }
}

}  // namespace tierd
