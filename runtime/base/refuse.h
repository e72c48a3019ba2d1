/* Shared by the runtime and the Python host: how messages about arguments begin. docs/checks.md lists all messages. */
#ifndef GTSTUB_BASE_REFUSE_H
#define GTSTUB_BASE_REFUSE_H

/* Both have two values: the path of the argument, and the name of its program. */
#define GTS_ARGUMENT "Argument '%s' of program '%s' "
#define GTS_TABLE "Connectivity '%s' of program '%s' "

#endif
