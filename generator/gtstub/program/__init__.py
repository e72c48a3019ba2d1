"""Compiled programs as their users call them."""
