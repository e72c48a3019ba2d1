"""Cache entries on disk. Empty on purpose: loading an entry imports no more than it needs."""
