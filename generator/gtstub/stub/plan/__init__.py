"""The call plan: the source of each argument of a compiled SDFG."""
