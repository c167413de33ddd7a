/* Added in 2.8: a lossy predictor that chooses the neurons of each row by themselves says so. */
CONSTANT(TIERD_PREDICTOR_ROWS_APART, 32)
