"""Call plans become text: C, headers and Fortran modules."""
