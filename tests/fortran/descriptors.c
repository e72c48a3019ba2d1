/*
 * A host that calls the program 'prog' as a Fortran compiler would, whose descriptors are those of LAYOUT. Prints what
 * `stat` and `errmsg` become, of a call and of a call that is bound, and how often the SDFG library was called.
 */
#include <ISO_Fortran_binding.h>

#include "../c/harness.h"

#define SIZE 5

/* The stub was compiled for another layout, so that its descriptors are of another type. */
void prog_fortran(gts_program *const *program, const void *x, double factor, const void *out, int *stat,
                  const void *errmsg);
void prog_fortran_bind(gts_program *const *program, const void *x, double factor, const void *out, void *bound,
                       int *stat, const void *errmsg);

/* Of an argument, whose lower bound is 0, or of a pointer, whose lower bound is that of its target, here 1. */
static CFI_cdesc_t *descriptor(void *data, size_t size, int type, size_t extent, bool is_pointer)
{
    CFI_cdesc_t *const made = calloc(1, sizeof *made + sizeof *made->dim);
    CHECK(made != NULL);
    *made = (CFI_cdesc_t){.base_addr = data,
                          .elem_len = size,
                          .version = CFI_VERSION,
                          .rank = extent != 0,
                          .type = (CFI_type_t)type,
                          .attribute = CFI_attribute_other};
    made->dim[0] = (CFI_dim_t){.lower_bound = is_pointer, .extent = (CFI_index_t)extent, .sm = (CFI_index_t)size};
    return made;
}

int main(void)
{
    double x[SIZE] = {0}, out[SIZE];
    char message[200];
    CFI_cdesc_t *const errmsg = descriptor(message, sizeof message, CFI_type_char, 0, false);
    const struct recorder recorder = open_recorder("./libprog.so");
    gts_program *program = load("./prog_stub.so", "./libprog.so");
    void *bound = NULL;
    for (int is_bound = 0; is_bound < 2; ++is_bound) {
        int stat = -1;
        CFI_cdesc_t *const from = descriptor(x, sizeof *x, CFI_type_double, SIZE, is_bound);
        CFI_cdesc_t *const to = descriptor(out, sizeof *out, CFI_type_double, SIZE, is_bound);
        memset(message, ' ', sizeof message);
        if (is_bound)
            prog_fortran_bind(&program, from, 2.0, to, &bound, &stat, errmsg);
        else
            prog_fortran(&program, from, 2.0, to, &stat, errmsg);
        size_t length = sizeof message;
        while (length > 0 && message[length - 1] == ' ')
            --length;
        printf("%d %.*s\n", stat, (int)length, message);
    }
    printf("%zu\n", recorder.count());
    return 0;
}
