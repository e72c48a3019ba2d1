"""DaCe: signatures of SDFGs, and the configuration of builds."""
