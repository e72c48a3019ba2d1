"""Which backend compiles a program, and with which options (docs/backends.md)."""
