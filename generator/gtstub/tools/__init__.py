"""What looks at programs: reports, memory, rules for SDFGs, profiles, timelines and recordings."""
