/* gts_open(): a program is found where its two libraries lie together; closed ones and those of others are refused. */
#include "gtstub/stub.h"
#include "whole.h"

static void refused(const char *path, const char *text)
{
    gts_program *program = (gts_program *)&program;
    CHECK(gts_open(path, &program) == -1);
    CHECK(program == NULL);
    CHECK_TEXT(gts_last_error(NULL)->message, text);
}

static void opens(const char *path)
{
    gts_program *program;
    if (gts_open(path, &program) != 0)
        CHECK_TEXT(gts_last_error(NULL)->message, "");
    struct whole w;
    set_up(&w);
    CHECK(whole_call(program, &w.args) == 0);
    CHECK(whole_call(program, &w.args) == 0);
    gts_close(&program);
    CHECK(program == NULL);
    CHECK(whole_call(program, &w.args) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_RUNTIME_ERROR,
                "Program 'whole' is not open: it was closed, or never opened.");
    gts_close(&program); /* does nothing */
}

/* Generated from other signatures, or by another gtstub, and so perhaps of another layout. */
static void test_program_of_another_stub(const char *path, const char *name)
{
    gts_program *program;
    CHECK(gts_open(path, &program) == 0);
    struct whole w;
    set_up(&w);
    char text[256];
    (void)snprintf(text, sizeof text,
                   "Program '%s' was opened from a stub that differs from that of 'whole' in the host; "
                   "generate and build both from the same signatures.",
                   name);
    for (int i = 0; i < 2; ++i) { /* it is not left busy */
        CHECK(whole_call(program, &w.args) == -1);
        CHECK_ERROR(gts_last_error(program), GTS_RUNTIME_ERROR, text);
    }
    gts_close(&program);
}

/* Any program can be called by what its descriptor says. */
static void test_descriptor(void)
{
    gts_program *program;
    CHECK(gts_open("entry", &program) == 0);
    void *const stub = dlopen("entry/whole_stub.so", RTLD_NOW);
    const gts_stub *const descriptor = dlsym(stub, "gts_descriptor");
    struct whole w;
    set_up(&w);
    CHECK_TEXT(descriptor->library, "libwhole.so");
    CHECK_TEXT(descriptor->leaves[4].name, "flag");
    CHECK(descriptor->leaves[4].member == offsetof(struct whole_args, flag));
    CHECK(descriptor->args_size == sizeof w.args);
    CHECK(descriptor->call(program, &w.args) == 0);
    CHECK_TEXT(descriptor->leaves[7].codomain, "Vertex");
    gts_close(&program);
}

int main(void)
{
    opens("./whole_stub.so");
    opens("whole_stub.so");
    opens("entry"); /* a copy of the stub that this host is linked with */
    opens("entry/");
    opens("entry/whole_stub.so");
    test_program_of_another_stub("prog_stub.so", "prog");
    test_program_of_another_stub("other_program_digest", "whole");
    test_program_of_another_stub("other_sdfg_digest", "whole");
    test_program_of_another_stub("other_version", "whole");
    test_descriptor();
    refused("missing", "Cannot open 'missing': No such file or directory.");
    refused("nothing", "Directory 'nothing' holds 0 call stubs (*_stub.so), not one; name the file.");
    refused("several", "Directory 'several' holds 2 call stubs (*_stub.so), not one; name the file.");
    refused("./libwhole.so", "Library './libwhole.so' is not a gtstub call stub.");
    gts_program *program;
    CHECK(gts_open("alone", &program) == -1);
    const char start[] = "Cannot load library 'alone/libwhole.so': ";
    CHECK(strncmp(gts_last_error(NULL)->message, start, sizeof start - 1) == 0);
    return 0;
}
