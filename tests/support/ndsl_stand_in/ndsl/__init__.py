"""
A stand-in for NDSL (NOAA-GFDL/NDSL), which no package index has, for the tests of gtstub.frameworks.ndsl.

It has the names, arguments and order of events, not the code, of what those tests meet of NDSL in 2026: Quantity,
State, Local and LocalState; NDSLRuntime, with its check of who reads a Local; DaceConfig and DaCeOrchestration;
DaceExecutable with its hash; `orchestrate`, `orchestrate_function` and the lazy callables that they make, which parse,
build, load and call through DaCe. What NDSL gets wrong in a call is wrong here too: arrays of `self` and compile-time
arguments of the first call stay, keywords are not hashed, shapes are not checked. Left out: gt4py stencils,
optimisation of SDFGs, MPI, GPUs, timers that measure.
"""
