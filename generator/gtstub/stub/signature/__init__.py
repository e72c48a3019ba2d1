"""The two JSON documents from which a stub is made."""
