"""Granules: captured steps over one set of arrays, as a folder that C and Fortran hosts run without Python."""
