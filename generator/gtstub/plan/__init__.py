"""The call plan: where each argument of a compiled SDFG comes from."""
