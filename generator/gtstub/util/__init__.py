"""Small helpers that know nothing of programs."""
