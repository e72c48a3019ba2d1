/* Prints the auxiliary vector in hexadecimal digits, and which of these features the CPU lacks. */
#include <stdio.h>

#include "base/cpu.h"

int main(int argc, char **argv)
{
    FILE *const file = fopen("/proc/self/auxv", "rb");
    for (int byte = fgetc(file); byte != EOF; byte = fgetc(file))
        (void)printf("%02x", (unsigned int)byte);
    (void)fclose(file);
    for (int i = 1; i < argc; ++i) {
        const char *lacking;
        if (gts_lacks_feature(argv[i], &lacking) > 0)
            (void)fprintf(stderr, "%s\n", lacking);
    }
    return 0;
}
