/* The parameters that a plugin declares. The host checks the configuration against them before it creates an
 * instance, and prints the manual from them. C99, self-contained. */
#ifndef TIERD_PARAMS_H
#define TIERD_PARAMS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TIERD_PARAM_INTEGER = 0, /* within least and most */
  TIERD_PARAM_NUMBER = 1,  /* within least and most */
  TIERD_PARAM_FLAG = 2,
  TIERD_PARAM_TEXT = 3 /* one of choices, if there are any */
};

enum {
  TIERD_LOSSLESS = 0,
  TIERD_LOSSY = 1,
  /* Values other than the default may change results, which then depend on memories. */
  TIERD_LOSSY_BY_MEMORY = 2
};

/* May grow: arrays of it have the stride param_size of the plugin that they belong to. */
typedef struct tierd_param {
  const char* name; /* the key in the configuration: letters, digits and '_' */
  uint8_t type;
  uint8_t lossy;        /* TIERD_LOSSY_…: whether values other than the default may change results */
  const char* standard; /* the default, written as in TOML without quotes: "8", "0.5", "true", "recent" */
  double least, most;   /* both inclusive; integers beyond 2^53 have no such bound: use -INFINITY, INFINITY */
  const char* choices;  /* of a text, "a|b|c"; NULL: any text */
  const char* help;     /* one line: its effect, its unit, and the source of its default */
} tierd_param;

#ifdef __cplusplus
}
#endif
#endif
