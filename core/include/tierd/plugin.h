/* A strategy (predictor, quantizer, cache or balancer) or a codec, as a shared object. The only headers of
 * tierd that it includes are those of this folder. C99; plugin.hpp is C++ over it.
 *
 * The file is called KIND-NAME.so and exports one symbol, `tierd_plugin_entry`. A plugin is passive: it has
 * no threads, files or sockets, and returns the same results for the same calls and seed. It reports errors
 * by negative status codes, never by exceptions. The host checks every result; an invalid result, an
 * exception or a call that takes too long quarantines the plugin and fails the request. (A codec may take its
 * time, and is not quarantined: only the failing call fails.)
 *
 * Stable while TIERD_ABI_MAJOR is: the symbol, the fields of every struct and their order, the meaning of
 * every function. Minor versions (TIERD_ABI_MINOR) may add fields at the end of structs that begin with their
 * size, functions at the end of tables, and further extensions.
 *
 * A struct that may grow is passed by pointer, never as an element of an array: code compiled with another
 * size would use a wrong stride. Arrays hold pointers to such structs, or structs that say "never grows". */
#ifndef TIERD_PLUGIN_H
#define TIERD_PLUGIN_H

#include "tierd/ext/balancer.h"
#include "tierd/ext/cache.h"
#include "tierd/ext/codec.h"
#include "tierd/ext/heat.h"
#include "tierd/ext/predictor.h"
#include "tierd/ext/quantizer.h"
#include "tierd/host.h"
#include "tierd/params.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_ABI_MAJOR 2
#define TIERD_ABI_MINOR 10

typedef struct tierd_plugin {
  /* The host reads these three before all other fields. */
  uint32_t abi_major; /* TIERD_ABI_MAJOR; another one is refused */
  uint32_t abi_minor; /* TIERD_ABI_MINOR */
  uint32_t size;      /* sizeof(tierd_plugin) */

  const char* kind;    /* "predictor", "quantizer", "cache", "balancer"; since 2.2 "codec" */
  const char* name;    /* as in the configuration: letters, digits, '-' and '_' */
  const char* version; /* of the plugin, for reports */
  const char* summary; /* one line for lists and the manual */
  const char* manual;  /* more for the manual, or NULL: its effect, its source, when it is a bad choice */
  uint32_t lossy;      /* 1: may change results, which a codec must not */

  const tierd_param* params; /* [n_params], param_size apart, or NULL */
  uint32_t n_params;
  uint32_t param_size; /* sizeof(tierd_param): the plugin's own, so that it may grow even in an array */

  /* [kernel thread; of a codec any thread] Creates an instance in *self, or returns an error after logging
   * the reason. `host` outlives it. Several instances may live at once. */
  int (*create)(const tierd_host* host, void** self);
  /* [kernel thread; of a codec any thread] Destroys the instance, which no other call uses any more. */
  void (*destroy)(void* self);
  /* [any thread] Returns the table for an id such as TIERD_CACHE_1, or NULL. It lives as long as the file is
   * loaded. */
  const void* (*extension)(const char* id);
} tierd_plugin;

#if defined(_WIN32)
#define TIERD_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TIERD_EXPORT __attribute__((visibility("default")))
#else
#define TIERD_EXPORT
#endif

/* The symbol that a plugin exports. */
TIERD_EXPORT extern const tierd_plugin tierd_plugin_entry;

#ifdef __cplusplus
}
#endif
#endif
