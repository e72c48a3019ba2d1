/* Opens and closes the programs in these folders, and prints their names. */
#include <stdio.h>

#include "gtstub/program.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        gts_program *program;
        if (gts_open(argv[i], &program) != 0) {
            (void)fprintf(stderr, "%s\n", gts_last_error(NULL)->message);
            return 1;
        }
        (void)fprintf(stderr, "%s\n", program->stub->name);
        gts_close(&program);
    }
    return 0;
}
