// A codec that keeps bytes unchanged behind their number. A macro of its target adds one fault
// (CMakeLists.txt).
#include <string.h>

#include <exception>

#include "tierd/plugin.h"

#ifndef BAD_LOSSY
#define BAD_LOSSY 0
#endif
#ifndef BAD_TABLE_SIZE
#define BAD_TABLE_SIZE sizeof(tierd_codec_1)
#endif
#ifndef BAD_CREATE
#define BAD_CREATE create
#endif
#ifndef BAD_BOUND
#define BAD_BOUND bound
#endif
#ifndef BAD_COMPRESS
#define BAD_COMPRESS compress
#endif
#ifndef BAD_EXPAND
#define BAD_EXPAND expand
#endif

namespace {

struct Codec {
  const tierd_host* host;
};

class Complaint : public std::exception {
 public:
  const char* what() const noexcept override { return "no such thing as a neuron"; }
};

[[maybe_unused]] int create(const tierd_host* host, void** self) {
  *self = new Codec{host};
  return TIERD_OK;
}
[[maybe_unused]] int create_throws(const tierd_host*, void**) {
  throw Complaint();
}
void destroy(void* self) {
  delete static_cast<Codec*>(self);
}

[[maybe_unused]] int fail(void* self, int code) {
  const tierd_host* host = static_cast<Codec*>(self)->host;
  host->log(host->context, TIERD_LOG_ERROR, "it is not my day");
  return code;
}

[[maybe_unused]] int bound(void*, uint64_t n, uint64_t* bytes) {
  *bytes = n + sizeof n;
  return TIERD_OK;
}
[[maybe_unused]] int bound_of_nothing(void*, uint64_t, uint64_t* bytes) {
  *bytes = 0;
  return TIERD_OK;
}
[[maybe_unused]] int bound_of_everything(void*, uint64_t, uint64_t* bytes) {
  *bytes = UINT64_MAX;
  return TIERD_OK;
}

[[maybe_unused]] int compress(void*, const void* in, uint64_t n, void* out, uint64_t cap, uint64_t* written) {
  if (cap < n + sizeof n) return TIERD_E_NO_SPACE;
  memcpy(out, &n, sizeof n);
  memcpy(static_cast<char*>(out) + sizeof n, in, n);
  *written = n + sizeof n;
  return TIERD_OK;
}
[[maybe_unused]] int compress_too_much(void*, const void*, uint64_t, void*, uint64_t cap, uint64_t* written) {
  *written = cap + 1;
  return TIERD_OK;
}
[[maybe_unused]] int compress_nothing(void*, const void*, uint64_t, void*, uint64_t, uint64_t*) {
  return TIERD_OK;
}
[[maybe_unused]] int compress_fails(void* self, const void*, uint64_t, void*, uint64_t, uint64_t*) {
  return fail(self, TIERD_E_INTERNAL);
}
[[maybe_unused]] int compress_throws(void*, const void*, uint64_t, void*, uint64_t, uint64_t*) {
  throw Complaint();
}

[[maybe_unused]] int expand(void*, const void* in, uint64_t n_in, void* out, uint64_t n_out) {
  uint64_t n = 0;
  if (n_in < sizeof n) return TIERD_E_INVALID;
  memcpy(&n, in, sizeof n);
  if (n != n_out || n > n_in - sizeof n) return TIERD_E_INVALID;
  memcpy(out, static_cast<const char*>(in) + sizeof n, n);
  return TIERD_OK;
}
[[maybe_unused]] int expand_fails(void* self, const void*, uint64_t, void*, uint64_t) {
  return fail(self, TIERD_E_INTERNAL);
}
[[maybe_unused]] int expand_throws(void*, const void*, uint64_t, void*, uint64_t) {
  throw 42;
}

constexpr tierd_codec_1 table = {BAD_TABLE_SIZE, BAD_BOUND, BAD_COMPRESS, BAD_EXPAND};

const void* extension(const char* id) {
  return strcmp(id, TIERD_CODEC_1) == 0 ? &table : nullptr;
}

}  // namespace

extern "C" TIERD_EXPORT const tierd_plugin tierd_plugin_entry = {TIERD_ABI_MAJOR,
                                                                 TIERD_ABI_MINOR,
                                                                 sizeof(tierd_plugin),
                                                                 "codec",
                                                                 NAME,
                                                                 "1.0",
                                                                 "of the tests",
                                                                 nullptr,
                                                                 BAD_LOSSY,
                                                                 nullptr,
                                                                 0,
                                                                 0,
                                                                 BAD_CREATE,
                                                                 destroy,
                                                                 extension};
