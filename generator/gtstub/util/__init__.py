"""Helpers that know nothing about programs."""
