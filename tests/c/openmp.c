/* A child that is forked after a parallel region of OpenMP loads the program again, and calls it. */
#include <sys/wait.h>
#include <unistd.h>

#include "whole.h"

static void call(void)
{
    gts_program *program = load("./whole_stub.so", "./with_openmp.so");
    struct whole w;
    set_up(&w);
    CHECK(whole_call(program, &w.args) == 0);
    gts_close(&program);
}

int main(void)
{
    call();
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)alarm(60); /* ends a child that waits for threads it does not have */
        call();
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    call();
    return 0;
}
