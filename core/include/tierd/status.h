/* Answers of plugin and host functions. Negative numbers are errors; where a function returns a count, 0 and
 * above are counts. C99, self-contained. */
#ifndef TIERD_STATUS_H
#define TIERD_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TIERD_OK = 0,
  TIERD_E_INVALID = -1,     /* an argument or parameter is out of its range */
  TIERD_E_NO_SPACE = -2,    /* the caller's buffer is too small for the answer, or memory is short */
  TIERD_E_UNSUPPORTED = -3, /* this strategy cannot serve this site or encoding, or needs what is not there */
  TIERD_E_INTERNAL = -4     /* the plugin has failed; a strategy is quarantined for it */
};

#ifdef __cplusplus
}
#endif
#endif
