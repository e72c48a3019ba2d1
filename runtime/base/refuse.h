/* Shared by the runtime and the Python host: how messages begin that refuse an argument. docs/checks.md lists them all. */
#ifndef GTSTUB_BASE_REFUSE_H
#define GTSTUB_BASE_REFUSE_H

/* Both take two values: the path of the argument, and the name of its program. */
#define GTS_ARGUMENT "Argument '%s' of program '%s' "
#define GTS_TABLE "Connectivity '%s' of program '%s' "

#endif
