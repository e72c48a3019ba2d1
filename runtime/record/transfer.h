/* Inside the runtime: copies arguments of replayed calls between the host and a GPU. */
#pragma once

#include "gtstub/program.h"

/*
 * Makes a copy of memory of the host on the GPU of a program, on its stream, for the argument `leaf`. *copy is to be
 * freed with gts_transfer_free() before the memory is. Returns -1 with program->error.
 */
int gts_transfer_put(gts_program *program, const gts_contract *leaf, const void *memory, size_t size, void **copy);

/* Copies a copy back into memory of the host, behind the work of the program, and waits for that. -1 as above. */
int gts_transfer_get(gts_program *program, void *memory, const void *copy, size_t size);

/* Waits for the GPU, and frees a copy, which may be NULL. */
void gts_transfer_free(const gts_program *program, void *copy);

/*
 * Copies an array of a host from a GPU, on the stream of all programs, and waits for that stream. The array becomes the
 * one in *memory, which is to be freed with free(), also after -1 with gts_own_error.
 */
int gts_transfer_array(const char *program, const char *argument, gts_array *array, char **memory);
