/* Added in 2.7: experts that are cut into channels have operators of their own. */
CONSTANT(TIERD_NO_EXPERT, UINT32_MAX)
FIELD(tierd_site_view, expert, 48, uint32_t)
