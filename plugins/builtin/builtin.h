/* The strategies that are linked into the programs. */
#ifndef TIERD_PLUGINS_BUILTIN_H
#define TIERD_PLUGINS_BUILTIN_H

#include "tierd/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL-terminated. */
extern const tierd_plugin* const tierd_builtin_plugins[];

#ifdef __cplusplus
}
#endif
#endif
