/* The views that a strategy receives. Views are the host's memory and are valid until the call returns. Each
 * struct that may grow begins with its size: a reader uses a field only if it lies inside `size`, and such a
 * struct is passed by pointer, never in an array. C99, self-contained. */
#ifndef TIERD_VIEWS_H
#define TIERD_VIEWS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TIERD_NO_SITE UINT32_MAX
#define TIERD_NO_EDITION UINT32_MAX
#define TIERD_NO_LAYER UINT16_MAX
#define TIERD_NO_MEMORY UINT32_MAX
#define TIERD_NO_UNIT UINT32_MAX
#define TIERD_NO_EXPERT UINT32_MAX

/* How a site is sliced. */
enum { TIERD_AXIS_ROW = 0, TIERD_AXIS_NEURON = 1, TIERD_AXIS_CHANNEL = 2, TIERD_AXIS_EXPERT = 3 };

/* All neurons of a site in one encoding: neurons are stored, fetched and kept by edition. Several sites may
 * share one: a tied embedding uses the head's. A memory may hold another edition in its place, made of it
 * while it is fetched (tierd_host.held); the memory's cache finds that one among the site's. */
typedef struct tierd_edition_view {
  uint32_t size;
  uint32_t edition;  /* its number */
  uint32_t site;     /* that it belongs to; of sites that share it, the one that every step uses whole */
  uint32_t n;        /* neurons; 0 for a cache whose memory holds another edition in its place */
  uint32_t bytes;    /* of one slot */
  uint16_t encoding; /* number of the encoding, e.g. 4 is q4_0 */
  uint16_t reserved;
} tierd_edition_view;

typedef struct tierd_site_view {
  uint32_t size;
  uint32_t site; /* the site's number */
  const char* name;
  /* layer_group: the number of the layer group of `layer`. Neurons of one number are contiguous over the
   * layers of a group, so one read fetches them for all: wish for them in each of these layers. */
  uint16_t layer, op_group, layer_group;
  uint8_t axis;
  uint8_t given;        /* the active set is given by the caller (token ids, a router), never predicted */
  uint32_t n;           /* neurons */
  uint32_t n_in, n_out; /* values per row of the batch that the operator reads, and writes */
  uint32_t n_editions;
  const uint32_t* editions; /* [n_editions] numbers, the best encoding first; at least one */
  /* The expert that the operator belongs to, if experts have operators of their own: a step passes only those
   * of the experts that the layer's router has chosen. Else TIERD_NO_EXPERT. Since 2.7. */
  uint32_t expert;
  /* 1: each neuron contributes to every row, as behind a SiLU, so firing does not distinguish neurons. 0:
   * some neurons contribute exactly nothing to a row, as behind a ReLU, or the host does not know. Since
   * 2.10. */
  uint32_t never_silent;
} tierd_site_view;

/* A memory for neurons other than the store: a tier's memory, or that of one of its agents. */
typedef struct tierd_memory_view {
  uint32_t size;
  uint32_t memory; /* its number, from 1: m is the host's memories[m - 1] */
  uint32_t over; /* the memory whose cache is asked for neurons missing here, a lesser number; 0: the store */
  uint32_t unit; /* the unit that computes from it, or TIERD_NO_UNIT */
  const char* tier; /* its name in the configuration */
  /* Bytes that its cache may share out at present; up to date also in that cache's `share` and `resize`, so a
   * cache may use the sizes of the memories over its own. 0 before the first `share`. Since 2.1. */
  uint64_t bytes;
  /* Bytes of its staging blocks, which hold neurons that are not kept until they are used. Since 2.3. */
  uint64_t staging_bytes;
  /* The cost of a read of the store beyond the bytes that it fetches, in bytes, as its reader weighs it:
   * neurons no farther apart in the store are fetched with the gap between them by one read, not two. 0:
   * neurons are not read from the store into this memory, or the cost is not known, as while strategies are
   * created. Since 2.6. */
  uint64_t gap_bytes;
} tierd_memory_view;

/* A unit: an agent that computes. */
typedef struct tierd_unit_view {
  uint32_t size;
  uint32_t unit;   /* its number, from 0 */
  uint32_t memory; /* the memory that it computes from */
} tierd_unit_view;

/* A foreseen set belongs to a wish for a later pass. A quantizer chooses editions for it; the pass itself
 * calls the quantizer again and may use others. Since 2.5. */
enum { TIERD_SET_GIVEN = 0, TIERD_SET_PREDICTED = 1, TIERD_SET_TRUE = 2, TIERD_SET_FORESEEN = 3 };
/* The extent of a true set: all neurons, only the computed ones, or all neurons of a sampled step. */
enum { TIERD_KNOWN_ALL = 0, TIERD_KNOWN_COMPUTED = 1, TIERD_KNOWN_SAMPLED = 2 };

/* The neurons of a site that a step uses. */
typedef struct tierd_set_view {
  uint32_t size;
  uint32_t site;
  uint32_t edition; /* of the site, if the set is of neurons in one encoding; else TIERD_NO_EDITION */
  uint32_t rows;    /* of the batch */
  uint32_t n;
  uint8_t kind, known;
  uint16_t prompt;          /* 1: the rows are of prompts, else 0 */
  const uint32_t* idx;      /* [n], the union over the rows, ascending; NULL: all of the site's neurons */
  const uint64_t* row_mask; /* [n x ceil(rows/64)]; NULL: every row uses every neuron */
  /* [n] the importance of each neuron relative to the others of this set, more is more: the predictor's
   * score, or the greatest weight given by a router; in a measured step, -FLT_MAX for a neuron without a
   * score. NULL: no strategy needs scores (TIERD_LEVELS_NEEDS_SCORES, TIERD_BALANCER_NEEDS_SCORES), or there
   * are none. */
  const float* score;
  /* [n] index into the site's editions, for a balancer, and for a predictor that receives the predicted set;
   * NULL: 0, or not chosen yet. */
  const uint8_t* level;
  const uint8_t* unit; /* [n] the unit that computes it, for such a predictor; NULL: 0, or none yet */
} tierd_set_view;

/* The neurons of a site that fired in a pass; only computed neurons are counted. */
typedef struct tierd_fired_view {
  uint32_t size;
  uint32_t site;
  uint32_t rows; /* of the batch */
  uint32_t n;
  uint8_t known; /* TIERD_KNOWN_ALL, or TIERD_KNOWN_COMPUTED: neurons that were not computed may be missing */
  uint8_t prompt; /* as in tierd_set_view */
  uint16_t reserved;
  const uint32_t* idx;   /* [n] ascending */
  const uint32_t* count; /* [n] the number of rows in which each fired, at least one */
} tierd_fired_view;

typedef struct tierd_set_out {
  uint32_t size;
  uint32_t cap; /* room in idx, in neurons */
  uint32_t n;   /* out */
  uint8_t all;  /* out: 1 = every neuron of the site; idx and n are ignored */
  uint32_t* idx;
  uint64_t* row_mask; /* [cap x ceil(rows/64)], of idx[i] at i; NULL if rows are not told apart */
  float* score;       /* [cap], of idx[i] at i, with `all` of neuron i; finite; NULL if not wanted */
  uint8_t scored;     /* out: 1 = score was written */
} tierd_set_out;

/* The rows of the batch that pass through a site. */
typedef struct tierd_rows_view {
  uint32_t size;
  uint32_t rows, dim;
  const float* x;      /* [rows x dim], or NULL when the strategy did not ask for it */
  const uint64_t* seq; /* [rows] sequence of each row */
} tierd_rows_view;

/* Neurons that a later pass will use, or that a memory should hold, for tierd_host::wish. */
typedef struct tierd_wish {
  uint32_t size;
  uint32_t memory;   /* to hold them; TIERD_NO_MEMORY: that of their unit, or a cache's own */
  uint32_t site;     /* that will use them; TIERD_NO_SITE: none in particular */
  uint32_t distance; /* in sites from the present one to `site`, over steps; at least 1 */
  uint32_t
      edition; /* of the site; TIERD_NO_EDITION: as the quantizer says. Without a site it must be named */
  uint32_t n;  /* of idx */
  const uint32_t* idx; /* ascending, copied by the call; NULL: all */
  const float* score;  /* [n] of idx, as in tierd_set_view, copied by the call; NULL: none */
} tierd_wish;

/* A tensor of the file that was given to the plugin. */
typedef struct tierd_tensor_view {
  uint32_t size;
  uint32_t tensor; /* its number, for `linear` */
  uint32_t n_dims; /* at most 4 */
  uint32_t reserved;
  uint64_t dims[4];  /* outermost first: rows, columns */
  const float* data; /* NULL of two dimensions: those are for `linear`; lives as long as the instance */
} tierd_tensor_view;

/* Never grows. */
typedef struct tierd_neuron {
  uint32_t edition, neuron;
} tierd_neuron;
/* Room for the neurons to evict. Never grows. */
typedef struct tierd_victims_out {
  uint32_t cap;       /* room in item */
  uint32_t n;         /* out */
  tierd_neuron* item; /* [cap] */
} tierd_victims_out;

#ifdef __cplusplus
}
#endif
#endif
