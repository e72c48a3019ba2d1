"""Builds cache entries, in one of many processes or in a pool of workers."""
