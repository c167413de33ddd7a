// The one thread that makes, loads and drives the reference runs. An engine belongs to one thread, because
// its io_uring does: reads that another thread submits are never completed.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <future>
#include <type_traits>
#include <utility>

#include "core/system/cores.h"

namespace tierd {

class ReferenceThread {
 public:
  // The thread has low priority: the subject gets its cores at once when its devices complete a read, and the
  // references use the remaining time.
  ReferenceThread() {
    run([] { give_way(); }).get();
  }

  // Runs a task on the thread, after earlier tasks. The future has its result.
  template <class Task>
  std::future<std::invoke_result_t<Task>> run(Task task) {
    std::packaged_task<std::invoke_result_t<Task>()> packaged(std::move(task));
    auto result = packaged.get_future();
    boost::asio::post(pool_, std::move(packaged));
    return result;
  }

 private:
  boost::asio::thread_pool pool_{1};
};

}  // namespace tierd
