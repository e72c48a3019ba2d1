"""Stand-in for ndsl.dsl; see the package."""
