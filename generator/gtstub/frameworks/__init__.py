"""The only place that may import gt4py, dace, icon4py or mpi4py: one module for each."""
