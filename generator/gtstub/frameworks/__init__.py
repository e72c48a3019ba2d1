"""The only place that may import gt4py, dace, icon4py or mpi4py: a folder or a module for each."""
