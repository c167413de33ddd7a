/* Added in 2.6: what is resident, and what a read costs beside its bytes. */
FIELD(tierd_memory_view, gap_bytes, 40, uint64_t)
FIELD(tierd_host, resident, 224, int (*)(void*, uint32_t, uint8_t*))
