/* Shared by the runtime and the Python host: messages about arguments. docs/checks.md lists all messages. */
#ifndef GTSTUB_BASE_REFUSE_H
#define GTSTUB_BASE_REFUSE_H

/* How messages begin. Both have two values: the path of the argument, and the name of its program. */
#define GTS_ARGUMENT "Argument '%s' of program '%s' "
#define GTS_TABLE "Connectivity '%s' of program '%s' "

/* Refuse the argument of a contract or a collection. `format` is the rest of the message. Both return -1. */
#define GTS_REFUSE(self, contract, kind, format, ...)                                                                  \
    gts_error_set(&(self)->error, kind, GTS_ARGUMENT format, (contract)->path, (self)->stub->name, ##__VA_ARGS__)
#define GTS_REFUSE_TABLE(self, contract, kind, format, ...)                                                            \
    gts_error_set(&(self)->error, kind, GTS_TABLE format, (contract)->path, (self)->stub->name, ##__VA_ARGS__)

#endif
