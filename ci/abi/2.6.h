/* Added in 2.6: the resident neurons, and the cost of a read beyond its bytes. */
FIELD(tierd_memory_view, gap_bytes, 40, uint64_t)
FIELD(tierd_host, resident, 224, int (*)(void*, uint32_t, uint8_t*))
