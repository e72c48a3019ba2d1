"""The tests of gtstub."""
