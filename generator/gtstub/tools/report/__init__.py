"""The report of a program: what `gtstub report` writes, as one HTML page and as a JSON document."""
