/* Added in 2.10: sites whose neurons contribute to every row. */
FIELD(tierd_site_view, never_silent, 52, uint32_t)
