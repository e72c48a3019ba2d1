"""Numbers of the C interface that the generator repeats; tests compare them with the C headers."""

ABI = 4
"""GTS_ABI: the binary interface between stubs, hosts and the runtime, whose file name ends in this number."""
