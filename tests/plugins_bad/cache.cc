// A cache that keeps nothing. A macro of its target adds one fault (CMakeLists.txt).
//
// Compiled a few dozen times, so it includes little.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <exception>

#include "tierd/plugin.h"

#ifndef BAD_MAJOR
#define BAD_MAJOR TIERD_ABI_MAJOR
#endif
#ifndef BAD_SIZE
#define BAD_SIZE sizeof(tierd_plugin)
#endif
#ifndef BAD_KIND
#define BAD_KIND "cache"
#endif
#ifndef BAD_NAME
#define BAD_NAME NAME
#endif
#ifndef BAD_SUMMARY
#define BAD_SUMMARY "of the tests"
#endif
#ifndef BAD_TABLE_SIZE
#define BAD_TABLE_SIZE sizeof(tierd_cache_1)
#endif
#ifndef BAD_SHARE
#define BAD_SHARE share_nothing
#endif
#ifndef BAD_ADMIT
#define BAD_ADMIT admit_nothing
#endif
#ifndef BAD_CREATE
#define BAD_CREATE create
#endif
#ifndef BAD_DESTROY
#define BAD_DESTROY destroy
#endif
#ifndef BAD_EXTENSION
#define BAD_EXTENSION extension
#endif
#ifndef BAD_PARAM_NAME
#define BAD_PARAM_NAME "size"
#endif
#ifndef BAD_PARAM_TYPE
#define BAD_PARAM_TYPE TIERD_PARAM_INTEGER
#endif
#ifndef BAD_PARAM_STANDARD
#define BAD_PARAM_STANDARD "8"
#endif
#ifndef BAD_PARAMS
#define BAD_PARAMS params
#endif
#ifndef BAD_PARAM_SIZE
#define BAD_PARAM_SIZE sizeof(tierd_param)
#endif

#ifdef BAD_INITIALISER
// Like a plugin compiled for another machine.
[[maybe_unused]] const int illegal = raise(SIGILL);
#endif

#ifdef BAD_UNRESOLVED
extern "C" void nobody_has_this();
#endif

namespace {

struct Cache {
  const tierd_host* host;
};

class Complaint : public std::exception {
 public:
  explicit Complaint(const char* what) : what_(what) {}
  const char* what() const noexcept override { return what_; }

 private:
  const char* what_;
};

uint32_t n_editions(void* self) {
  return static_cast<Cache*>(self)->host->n_editions;
}

[[maybe_unused]] int share_nothing(void* self, uint64_t, uint32_t* max_slots) {
#ifdef BAD_UNRESOLVED
  nobody_has_this();
#endif
  memset(max_slots, 0, n_editions(self) * sizeof *max_slots);
  return TIERD_OK;
}
[[maybe_unused]] int share_too_much(void* self, uint64_t, uint32_t* max_slots) {
  for (uint32_t e = 0; e < n_editions(self); ++e) ++max_slots[e];
  return TIERD_OK;
}
[[maybe_unused]] int share_throws(void*, uint64_t, uint32_t*) {
  throw Complaint("no such thing as a share");
}

[[maybe_unused]] int admit_nothing(void*, const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                                   tierd_victims_out* victims) {
  memset(verdict, TIERD_VERDICT_BYPASS, missing->n);
  victims->n = 0;
  return TIERD_OK;
}
[[maybe_unused]] int admit_throws(void*, const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out*) {
  throw 42;
}
[[maybe_unused]] int admit_for_ever(void*, const tierd_set_view*, int, uint32_t, uint8_t*,
                                    tierd_victims_out*) {
  for (volatile bool on = true; on;) {
  }
  return 0;
}
[[maybe_unused]] int admit_exits(void*, const tierd_set_view*, int, uint32_t, uint8_t*, tierd_victims_out*) {
  exit(0);
}

[[maybe_unused]] int admit_slowly(void* self, const tierd_set_view* missing, int priority,
                                  uint32_t free_slots, uint8_t* verdict, tierd_victims_out* victims) {
  timespec now = {}, begun = {};
  const auto ns = [](const timespec& at) { return at.tv_sec * 1'000'000'000ll + at.tv_nsec; };
  for (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun); ns(now) < ns(begun) + 120'000'000;)
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return admit_nothing(self, missing, priority, free_slots, verdict, victims);
}
[[maybe_unused]] int admit_asleep(void* self, const tierd_set_view* missing, int priority,
                                  uint32_t free_slots, uint8_t* verdict, tierd_victims_out* victims) {
  const timespec pause = {1, 50'000'000};
  nanosleep(&pause, nullptr);
  return admit_nothing(self, missing, priority, free_slots, verdict, victims);
}
// Sleeps for less than ten deadlines of the tests, like a call during which the process was stopped.
[[maybe_unused]] int admit_after_a_nap(void* self, const tierd_set_view* missing, int priority,
                                       uint32_t free_slots, uint8_t* verdict, tierd_victims_out* victims) {
  const timespec pause = {0, 150'000'000};
  static int naps = 2;
  if (naps-- > 0) nanosleep(&pause, nullptr);
  return admit_nothing(self, missing, priority, free_slots, verdict, victims);
}
[[maybe_unused]] int admit_fails_once(void* self, const tierd_set_view* missing, int priority,
                                      uint32_t free_slots, uint8_t* verdict, tierd_victims_out* victims) {
  static bool failed = false;
  if (failed) return admit_nothing(self, missing, priority, free_slots, verdict, victims);
  failed = true;
  return TIERD_E_INTERNAL;
}
[[maybe_unused]] int admit_fails(void* self, const tierd_set_view*, int, uint32_t, uint8_t*,
                                 tierd_victims_out*) {
  const tierd_host* host = static_cast<Cache*>(self)->host;
  host->log(host->context, TIERD_LOG_ERROR, "lost my way\nand more");
  return TIERD_E_INTERNAL;
}
[[maybe_unused]] int admit_too_many_victims(void*, const tierd_set_view* missing, int, uint32_t,
                                            uint8_t* verdict, tierd_victims_out* victims) {
  memset(verdict, TIERD_VERDICT_BYPASS, missing->n);
  victims->n = victims->cap + 1;
  return TIERD_OK;
}
// The victim is not resident.
[[maybe_unused]] int admit_with_false_victim(void*, const tierd_set_view* missing, int, uint32_t,
                                             uint8_t* verdict, tierd_victims_out* victims) {
  memset(verdict, TIERD_VERDICT_KEEP, missing->n);
  victims->item[0] = {missing->edition, UINT32_MAX};
  victims->n = 1;
  return TIERD_OK;
}
[[maybe_unused]] int admit_all_without_victims(void*, const tierd_set_view* missing, int, uint32_t,
                                               uint8_t* verdict, tierd_victims_out* victims) {
  memset(verdict, TIERD_VERDICT_KEEP, missing->n);
  victims->n = 0;
  return TIERD_OK;
}
[[maybe_unused]] int admit_with_false_verdict(void*, const tierd_set_view* missing, int, uint32_t,
                                              uint8_t* verdict, tierd_victims_out* victims) {
  memset(verdict, 77, missing->n);
  victims->n = 0;
  return TIERD_OK;
}
[[maybe_unused]] int admit_refuses(void*, const tierd_set_view* missing, int, uint32_t, uint8_t* verdict,
                                   tierd_victims_out* victims) {
  memset(verdict, TIERD_VERDICT_REFUSE, missing->n);
  victims->n = 0;
  return TIERD_OK;
}

const tierd_cache_1 kTable = [] {
  tierd_cache_1 table{};
  table.size = BAD_TABLE_SIZE;
  table.share = BAD_SHARE;
  table.admit = BAD_ADMIT;
  return table;
}();

[[maybe_unused]] int create(const tierd_host* host, void** self) {
  *self = new Cache{host};
  return TIERD_OK;
}
[[maybe_unused]] int create_fails(const tierd_host* host, void**) {
  host->log(host->context, TIERD_LOG_ERROR, "the moon is full");
  return TIERD_E_INVALID;
}
[[maybe_unused]] int create_nothing(const tierd_host*, void**) {
  return TIERD_OK;
}
[[maybe_unused]] int create_throws(const tierd_host*, void**) {
  throw Complaint("not today");
}
// Reads a parameter that was never declared.
[[maybe_unused]] int create_asks(const tierd_host* host, void**) {
  int64_t value = 0;
  return host->integer(host->context, "undeclared", &value);
}
[[maybe_unused]] void destroy(void* self) {
  delete static_cast<Cache*>(self);
}
[[maybe_unused]] void destroy_throws(void* self) {
  delete static_cast<Cache*>(self);
  throw Complaint("never");
}
[[maybe_unused]] const void* extension(const char* id) {
  return strcmp(id, TIERD_CACHE_1) == 0 ? &kTable : nullptr;
}
[[maybe_unused]] const void* no_extension(const char*) {
  return nullptr;
}

[[maybe_unused]] const tierd_param params[] = {
    {"other", TIERD_PARAM_NUMBER, 0, "0.5", 0, 1, nullptr, "a number"},
    {BAD_PARAM_NAME, BAD_PARAM_TYPE, 0, BAD_PARAM_STANDARD, 0, 64, nullptr, "a size"},
};

}  // namespace

#ifdef BAD_NO_SYMBOL
#define tierd_plugin_entry another_name
extern "C" TIERD_EXPORT const tierd_plugin another_name;
#endif
extern "C" TIERD_EXPORT const tierd_plugin tierd_plugin_entry = {
    BAD_MAJOR, TIERD_ABI_MINOR, BAD_SIZE, BAD_KIND,       BAD_NAME,   "1.0",       BAD_SUMMARY,  nullptr,
    0,         BAD_PARAMS,      2,        BAD_PARAM_SIZE, BAD_CREATE, BAD_DESTROY, BAD_EXTENSION};
