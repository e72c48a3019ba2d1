"""The memory that an SDFG allocates (docs/memory.md)."""
