/* Added to the plugin interface in 2.3, which is not published yet; the rules of 2.0.h apply. */
FIELD(tierd_memory_view, staging_bytes, 32, uint64_t)
