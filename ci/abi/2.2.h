/* Added to the plugin interface in 2.2, which is not published yet; the rules of 2.0.h apply. */
FIELD(tierd_memory_view, bytes, 24, uint64_t)
FIELD(tierd_host, held, 208, uint32_t (*)(void*, uint32_t, uint32_t))
FIELD(tierd_codec_1, size, 0, uint32_t)
FIELD(tierd_codec_1, bound, 8, int (*)(void*, uint64_t, uint64_t*))
FIELD(tierd_codec_1, compress, 16, int (*)(void*, const void*, uint64_t, void*, uint64_t, uint64_t*))
FIELD(tierd_codec_1, expand, 24, int (*)(void*, const void*, uint64_t, void*, uint64_t))
STRING(TIERD_CODEC_1, "tierd.codec/1")
CONSTANT(TIERD_CODEC_MOST_BEYOND, 65536)
