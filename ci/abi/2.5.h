/* Added in 2.5: the kernel tells a quantizer which sets are foreseen. */
CONSTANT(TIERD_SET_FORESEEN, 3)
