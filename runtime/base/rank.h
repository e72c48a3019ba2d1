/* Inside the runtime: which process of a parallel run this is, and the names of the files that it writes. */
#pragma once

/* The rank that the launcher of a parallel run has given this process; -1 if it is alone. */
long gts_rank(void);

/*
 * Returns the absolute path of a file that this process writes when it ends, when its directory may be another one. The
 * process id takes the place of "%p". Without "%p", ranks of a parallel run add their numbers: "report-3.json". To be
 * freed with free(). NULL with errno if that fails, or if `path` is NULL or empty.
 */
char *gts_own_path(const char *path);
