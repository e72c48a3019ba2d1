"""What makes and keeps cache entries: compilers, builds, the cache, and whose files decide what runs."""
