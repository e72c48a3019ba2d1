/* Libraries that do not fit each other: each a clear error, and nothing of the SDFG has been called. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "whole.h"

#define TEXT_(number) #number
#define TEXT(number) TEXT_(number)

static void refused(const char *stub, const char *library, const char *text)
{
    gts_program *program = NULL;
    CHECK(gts_load(stub, library, &program) == -1);
    CHECK(program == NULL);
    CHECK_ERROR(gts_last_error(NULL), GTS_RUNTIME_ERROR, text);
}

/* The loader's own words are part of the message. */
static void cannot_be_opened(const char *stub, const char *library, const char *missing)
{
    gts_program *program = NULL;
    CHECK(gts_load(stub, library, &program) == -1);
    const gts_error error = *gts_last_error(NULL);
    char start[256];
    (void)snprintf(start, sizeof start, "Cannot load library '%s': ", missing);
    CHECK(strncmp(error.message, start, strlen(start)) == 0);
    CHECK(error.message[strlen(error.message) - 1] == '.');
    CHECK(error.kind == GTS_RUNTIME_ERROR);
}

static void load_well(void)
{
    gts_program *program = load("./whole_stub.so", "./libwhole.so");
    gts_close(&program);
    CHECK(program == NULL);
    gts_close(&program); /* does nothing */
}

/* The runtime's own bookkeeping has no refusal: the process ends, and says why. */
static void check_end_without_memory(void)
{
    int said[2], status;
    CHECK(pipe(said) == 0);
    const pid_t child = fork();
    if (child == 0) {
        (void)dup2(said[1], STDERR_FILENO);
        gts_program *program = NULL;
        _exit(gts_load("./huge.so", "./libwhole.so", &program));
    }
    (void)close(said[1]);
    char text[4096];
    FILE *const output = fdopen(said[0], "r");
    text[fread(text, 1, sizeof text - 1, output)] = '\0';
    CHECK(strstr(text, "gtstub: the process ends, because the system has no memory.\n") != NULL);
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    (void)fclose(output);
}

/* Arguments are paths relative to the working directory, as they stand in the messages. */
int main(void)
{
    load_well();
    const struct recorder recorder = open_recorder("./libwhole.so");
    recorder.clear();
    cannot_be_opened("./missing.so", "./libwhole.so", "./missing.so");
    cannot_be_opened("./whole_stub.so", "./missing.so", "./missing.so");
    refused("./libwhole.so", "./libwhole.so", "Library './libwhole.so' is not a gtstub call stub.");
    refused("./whole_stub.so", "./libprog.so",
            "Library './libprog.so' is not the SDFG of program 'whole': it does not export '__program_whole'.");
    refused("./whole_stub.so", "./without_init.so",
            "Library './without_init.so' is not the SDFG of program 'whole': it does not export '__dace_init_whole'.");
    refused("./whole_stub.so", "./without_exit.so",
            "Library './without_exit.so' is not the SDFG of program 'whole': it does not export '__dace_exit_whole'.");
    refused("./whole_stub.so", "./without_workspace.so",
            "Library './without_workspace.so' is not the SDFG of program 'whole': it has no workspace in 'CPU_Heap'.");
    refused("./other_abi.so", "./libwhole.so",
            "Stub './other_abi.so' was generated for ABI 99 of gtstub, but this is ABI " TEXT(
                GTS_ABI) "; generate it again.");
    check_end_without_memory();
    CHECK(recorder.count() == 0);
    load_well();
    return 0;
}
