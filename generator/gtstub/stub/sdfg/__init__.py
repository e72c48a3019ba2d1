"""The only reader of SDFGs in DaCe's JSON form: what an SDFG consists of, and when each of its parts runs."""
