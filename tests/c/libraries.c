/* The library that is in the file system is loaded, whatever this process loaded from the same path before. */
#define _GNU_SOURCE
#include <unistd.h>

#include "gtstub/stub.h"
#include "whole.h"

/*
 * The address of a symbol of the library that has this function `__program_whole`. All libraries are alike, so it is as
 * far from the function as in the first one. By its path, which may have another file now, musl finds the library there.
 */
static uintptr_t find(uintptr_t function, const char *symbol)
{
    static void *first;
    Dl_info info;
    CHECK(dladdr((const void *)function, &info) != 0);
    if (first == NULL)
        first = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    CHECK(first != NULL);
    return function + (uintptr_t)dlsym(first, symbol) - (uintptr_t)dlsym(first, "__program_whole");
}

/* Calls a program; returns the number that its SDFG library exports, and closes it. */
static int flavour_of(gts_program *program)
{
    struct whole w;
    set_up(&w);
    CHECK(program->stub->call(program, &w.args) == 0);
    const uintptr_t function = (uintptr_t)program->program;
    const int flavour = *(const int *)find(function, "flavour");
    gts_close(&program);
    ((void (*)(void))find(function, "record_clear"))();
    return flavour;
}

static int opened(const char *path)
{
    gts_program *program;
    if (gts_open(path, &program) != 0)
        CHECK_TEXT(gts_last_error(NULL)->message, "");
    return flavour_of(program);
}

static int loaded(const char *stub, const char *library)
{
    gts_program *program = load(stub, library);
    return flavour_of(program);
}

static void test_working_directories(void)
{
    CHECK(chdir("flavour_1") == 0);
    CHECK(opened(".") == 1);
    CHECK(loaded("./whole_stub.so", "./libwhole.so") == 1);
    CHECK(chdir("../flavour_2") == 0);
    CHECK(opened(".") == 2);
    CHECK(opened("whole_stub.so") == 2);
    CHECK(loaded("./whole_stub.so", "./libwhole.so") == 2);
    CHECK(loaded("whole_stub.so", "libwhole.so") == 2); /* LD_LIBRARY_PATH is not searched */
    CHECK(opened("../flavour_1") == 1);
    CHECK(chdir("..") == 0);
}

static void test_links(void)
{
    CHECK(symlink("flavour_1", "place") == 0);
    CHECK(opened("place") == 1);
    CHECK(unlink("place") == 0 && symlink("flavour_2", "place") == 0);
    CHECK(opened("place") == 2);
    CHECK(unlink("place") == 0 && symlink("flavour_1", "place") == 0);
    CHECK(opened("place") == 1);
    CHECK(unlink("place") == 0);
}

/* The names of `first` and `second` are exchanged twice: the libraries are those that were loaded first. */
static void test_directories_that_are_replaced(void)
{
    CHECK(opened("flavour_3") == 3);
    for (int i = 0; i < 3; ++i) {
        CHECK(rename("flavour_3", "old") == 0 && rename("flavour_4", "flavour_3") == 0);
        CHECK(rename("old", "flavour_4") == 0);
        CHECK(opened("flavour_3") == (i % 2 == 0 ? 4 : 3));
        CHECK(opened("flavour_4") == (i % 2 == 0 ? 3 : 4));
    }
}

static void test_a_file_that_is_written_to(void)
{
    CHECK(opened("flavour_1") == 1);
    FILE *const file = fopen("flavour_1/libwhole.so", "ab");
    CHECK(file != NULL && fputc(0, file) == 0 && fclose(file) == 0);
    gts_program *program;
    CHECK(gts_open("flavour_1", &program) == -1);
    CHECK_ERROR(
        gts_last_error(NULL), GTS_RUNTIME_ERROR,
        "Cannot load library 'flavour_1/libwhole.so': the file was written to after this process loaded it; load "
        "it in a new process.");
}

int main(void)
{
    test_working_directories();
    test_links();
    test_directories_that_are_replaced();
    test_a_file_that_is_written_to();
    return 0;
}
