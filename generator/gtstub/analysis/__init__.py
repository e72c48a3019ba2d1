"""What an SDFG says about itself in its JSON form, without DaCe: the rules that it breaks, and its memory."""
