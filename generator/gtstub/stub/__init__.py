"""The heart: two JSON documents become a plan, and the plan becomes the text of a stub. It imports no framework."""
