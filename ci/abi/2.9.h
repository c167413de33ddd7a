/* Added in 2.9: a predictor's answer whether it can work with other sizes of memories. */
FIELD(tierd_predictor_1, fits, 64, int (*)(void*))
