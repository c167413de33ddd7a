/* Added in 2.5: a quantizer hears which sets are foreseen. */
CONSTANT(TIERD_SET_FORESEEN, 3)
