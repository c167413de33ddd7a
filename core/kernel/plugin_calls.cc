#include "core/kernel/plugin_calls.h"

#include <mutex>
#include <set>

namespace tierd {

const std::string* lasting_name(const std::string& text) {
  static std::mutex mutex;
  static auto& names = *new std::set<std::string>;  // never destroyed: a plugin may outlive main
  const std::lock_guard lock(mutex);
  return &*names.insert(text).first;
}

}  // namespace tierd
