"""Compilers and machines."""
