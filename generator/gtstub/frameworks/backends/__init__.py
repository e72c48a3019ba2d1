"""The choice of a program's backend and its options (docs/backends.md)."""
