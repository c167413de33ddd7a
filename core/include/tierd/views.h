/* What a strategy sees of the world. Views are the host's memory and die when the call returns. Sizes come
 * first in each struct that may grow: a reader uses a field only if it lies inside `size`, and finds such a
 * struct behind a pointer, never in an array. C99, self-contained. */
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

/* All neurons of a site in one encoding: what is stored, fetched, kept and computed from. Several sites may
 * share one: a tied embedding is the head's. A memory may hold another edition in its place, which is made of
 * it while it is fetched (tierd_host.held): the cache of that memory finds that one among the site's. */
typedef struct tierd_edition_view {
  uint32_t size;
  uint32_t edition;  /* its number */
  uint32_t site;     /* whose neurons they are; where sites share them, the one that every step uses whole */
  uint32_t n;        /* neurons; 0 where whoever sees the view never has it: its memory holds another one */
  uint32_t bytes;    /* of one slot */
  uint16_t encoding; /* number of the encoding, e.g. 4 is q4_0 */
  uint16_t reserved;
} tierd_edition_view;

typedef struct tierd_site_view {
  uint32_t size;
  uint32_t site; /* the site's number */
  const char* name;
  /* layer_group: the number of the layers that `layer` is one of whose neurons of one number lie side by
   * side, so that one read brings those of all: what is wished for ahead of the same operator of each of
   * them. */
  uint16_t layer, op_group, layer_group;
  uint8_t axis;
  uint8_t given;        /* the active set is given from outside (token ids, a router), never predicted */
  uint32_t n;           /* neurons */
  uint32_t n_in, n_out; /* values that a row of the batch gives to the operator, and gets of it */
  uint32_t n_editions;
  const uint32_t* editions; /* [n_editions] numbers, the best encoding first; at least one */
  /* Whose operator it is, where each expert of a mixture has operators of its own: a step passes only those
   * of the experts that the layer's router has chosen. Else TIERD_NO_EXPERT. Since 2.7. */
  uint32_t expert;
  /* 1: each neuron gives something to every row, as behind a SiLU, so that nothing tells neurons that fire
   * from others. 0: some give exactly nothing to a row, as behind a ReLU, or the host does not know. Since
   * 2.10. */
  uint32_t never_silent;
} tierd_site_view;

/* Where neurons can be beside the store: a tier's memory, or that of one of its agents. */
typedef struct tierd_memory_view {
  uint32_t size;
  uint32_t memory; /* its number, from 1: m is the host's memories[m - 1] */
  uint32_t over; /* the memory whose cache is asked for what this one misses, a lesser number; 0: the store */
  uint32_t unit; /* that computes from it, or TIERD_NO_UNIT */
  const char* tier; /* its name in the configuration */
  /* That its cache may share out at present, also while that one's `share` or `resize` is called: a cache may
   * go by what those over it have. Before the first `share`: 0. Since 2.1. */
  uint64_t bytes;
  /* Of its staging blocks: what is fetched and not kept lies there until it has been used. Since 2.3. */
  uint64_t staging_bytes;
  /* What a read of the store costs beside the bytes that it brings, in bytes, as its reader weighs it:
   * neurons that lie no farther apart there are read with what lies between them, not twice. 0: nothing is
   * read from the store into this memory, or nobody knows. Not known while strategies are created. Since 2.6.
   */
  uint64_t gap_bytes;
} tierd_memory_view;

/* Who computes. */
typedef struct tierd_unit_view {
  uint32_t size;
  uint32_t unit;   /* its number, from 0 */
  uint32_t memory; /* that it computes from */
} tierd_unit_view;

/* A foreseen set is that of a wish for a later pass, of which a quantizer is asked in which editions it would
 * be used: the pass itself asks again, and may use others. Since 2.5. */
enum { TIERD_SET_GIVEN = 0, TIERD_SET_PREDICTED = 1, TIERD_SET_TRUE = 2, TIERD_SET_FORESEEN = 3 };
/* What a true set knows: everything, only what was computed, or everything of a sampled step. */
enum { TIERD_KNOWN_ALL = 0, TIERD_KNOWN_COMPUTED = 1, TIERD_KNOWN_SAMPLED = 2 };

/* The neurons of a site that a step uses. */
typedef struct tierd_set_view {
  uint32_t size;
  uint32_t site;
  uint32_t edition; /* of the site, where the set is about neurons in one encoding; else TIERD_NO_EDITION */
  uint32_t rows;    /* of the batch */
  uint32_t n;
  uint8_t kind, known;
  uint16_t prompt;          /* 1: the rows are of prompts, else 0 */
  const uint32_t* idx;      /* [n], the union over the rows, ascending; NULL: all of the site's neurons */
  const uint64_t* row_mask; /* [n x ceil(rows/64)]; NULL: every row uses every neuron */
  /* [n] how much each neuron matters beside the others of this set, more is more: what the predictor said, or
   * the greatest weight that a router gave; of a measured step, -FLT_MAX where nothing was said. NULL: nobody
   * asked for scores (TIERD_LEVELS_NEEDS_SCORES, TIERD_BALANCER_NEEDS_SCORES), or there are none. */
  const float* score;
  /* [n] index into the site's editions, for a balancer, and for a predictor that hears what was predicted;
   * NULL: 0, or not chosen yet. */
  const uint8_t* level;
  const uint8_t* unit; /* [n] who computes it, for such a predictor; NULL: 0, or not assigned yet */
} tierd_set_view;

/* Which neurons of a site gave something in a pass, those that were computed alone. */
typedef struct tierd_fired_view {
  uint32_t size;
  uint32_t site;
  uint32_t rows; /* of the batch */
  uint32_t n;
  uint8_t known;  /* TIERD_KNOWN_ALL, or TIERD_KNOWN_COMPUTED: the others may have been left out */
  uint8_t prompt; /* as in tierd_set_view */
  uint16_t reserved;
  const uint32_t* idx;   /* [n] ascending */
  const uint32_t* count; /* [n] in how many of the rows each did, at least one */
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

/* Neurons that a later pass will use, or that a memory should have, for tierd_host::wish. */
typedef struct tierd_wish {
  uint32_t size;
  uint32_t memory;   /* that shall have them. TIERD_NO_MEMORY: the one that they will be computed from; of a
                      * cache,   its own */
  uint32_t site;     /* that will use them; TIERD_NO_SITE: no certain one, before the first step */
  uint32_t distance; /* of that site from the present one, in sites along the walk, wrapping into the next
                      * step; at least 1 */
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
/* Room for neurons that are to leave. Never grows. */
typedef struct tierd_victims_out {
  uint32_t cap;       /* room in item */
  uint32_t n;         /* out */
  tierd_neuron* item; /* [cap] */
} tierd_victims_out;

#ifdef __cplusplus
}
#endif
#endif
