/* Inside the runtime: which process of a parallel run this is. */
#pragma once

/* The rank that the launcher of a parallel run has given this process; -1 if it is alone. */
long gts_rank(void);
