/* Added in 2.8: the flag of a lossy predictor that chooses the neurons of each row separately. */
CONSTANT(TIERD_PREDICTOR_ROWS_APART, 32)
