"""Profiles of calls: reports, tables and plots."""
