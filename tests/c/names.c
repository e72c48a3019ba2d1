/* Opens and closes the programs in these folders, and prints their names or what is wrong with them. */
#include <stdio.h>

#include "gtstub/program.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        gts_program *program;
        const bool is_open = gts_open(argv[i], &program) == 0;
        (void)fprintf(stderr, "%s\n", is_open ? program->stub->name : gts_last_error(NULL)->message);
        gts_close(&program);
    }
    return 0;
}
