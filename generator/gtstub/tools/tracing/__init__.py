"""The timeline of a process (docs/trace.md): what Python adds to it, and how those of several processes become one."""
