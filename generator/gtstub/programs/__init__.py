"""Compiled programs, as users call them."""
