"""Stand-in for ndsl.dsl.dace; see the package."""
