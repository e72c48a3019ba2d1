"""Which elements of its arguments an SDFG is sure to access: the `accesses` of regions.py, summarised by claims.py."""
