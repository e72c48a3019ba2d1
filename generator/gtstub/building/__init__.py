"""Who builds cache entries: one of many processes, or a pool of workers."""
