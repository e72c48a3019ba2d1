"""The compilers and the architecture of the machine."""
