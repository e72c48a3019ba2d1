"""Profiles of calls: their reports, tables and plots."""
