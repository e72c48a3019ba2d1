"""The two JSON documents that a stub is made from."""
