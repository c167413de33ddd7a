// The cores that a thread may run on. A model's runtime binds the thread that drives it to one core, and
// threads and programs that this thread starts inherit the binding: they must be given other cores first.
#pragma once

#include <sched.h>

namespace tierd {

class CoreSet {
 public:
  static CoreSet of_this_thread() {
    CoreSet cores;
    cores.known_ = sched_getaffinity(0, sizeof cores.set_, &cores.set_) == 0;
    return cores;
  }
  void use() const {
    if (known_) (void)sched_setaffinity(0, sizeof set_, &set_);
  }

 private:
  cpu_set_t set_{};
  bool known_ = false;
};

// Lets the calling thread run on `cores` during the object's lifetime.
class OnCores {
 public:
  explicit OnCores(const CoreSet& cores) : before_(CoreSet::of_this_thread()) { cores.use(); }
  ~OnCores() { before_.use(); }
  OnCores(const OnCores&) = delete;
  OnCores& operator=(const OnCores&) = delete;

 private:
  CoreSet before_;
};

}  // namespace tierd
