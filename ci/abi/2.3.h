/* What version 2.3 of the plugin interface has beyond 2.2, which is not published yet either: the rules are
 * those of 2.0.h. */
FIELD(tierd_memory_view, staging_bytes, 32, uint64_t)
