/*
 * An LD_PRELOAD library that makes one system call of a process go wrong, or kills the process there.
 *
 * Counted are the calls that change files below the directory GTS_INJECT_BELOW. GTS_INJECT_FAULT says what happens:
 *
 *   enospc, eio  the call fails
 *   short        half of the bytes are written, and the call says so (calls that write no bytes go well)
 *   torn         half of the bytes are written, then the process is killed
 *   before       the process is killed instead of the call
 *   after        the process is killed after the call
 *   power        as `after`, and what was not fsynced is lost: such a file is empty afterwards
 *   stop         the process stops before the call, until somebody continues it
 *   estale       the call fails: what it was about has been removed on the server of a network file system
 *   lost         the call is done, and says that it failed, as it does when the answer of a server was lost and the
 *                client has asked it again: a file that was renamed or removed is missing, a new one is there already
 *
 * to call number GTS_INJECT_AT (from 1; every later one too where GTS_INJECT_STAYS is set), or, where GTS_INJECT_ONE_IN
 * is set instead, to one call of so many, picked at random from GTS_INJECT_SEED and the process id. Only then are calls
 * of all threads counted: a claim's heart beats at times of its own, and would change the numbers. Without
 * GTS_INJECT_FAULT a random one of the faults before `stop` is picked, and without both calls are only counted.
 *
 * GTS_INJECT_LOG names a file to which a line "<number> <call> <fault or -> <path>" is appended per counted call; per
 * fault only where faults are random.
 */
#define _GNU_SOURCE
#include "inject.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

static const char *const gts_fault_names[FAULT_COUNT] = {"-",     "enospc", "eio",  "short",  "torn", "before",
                                                         "after", "power",  "stop", "estale", "lost"};

static struct {
    char below[PATH_MAX];
    size_t below_length; /* 0: nothing is counted */
    enum fault fault;
    long at;
    bool stays;
    long one_in;
    uint64_t random;
    int log;
} gts_set = {.log = -1};

static pthread_mutex_t gts_lock = PTHREAD_MUTEX_INITIALIZER;
static long gts_count;

/* Files written and not fsynced since: what a power failure empties. */
static struct {
    dev_t device;
    ino_t inode;
    int fd;
} gts_dirty[256];
static size_t gts_dirty_count;

__attribute__((constructor)) static void gts_start(void)
{
    const char *const below = getenv("GTS_INJECT_BELOW");
    if (below == NULL)
        return;
    const char *const fault = getenv("GTS_INJECT_FAULT");
    for (int i = 1; fault != NULL && i < FAULT_COUNT; ++i)
        if (strcmp(fault, gts_fault_names[i]) == 0)
            gts_set.fault = (enum fault)i;
    const char *const at = getenv("GTS_INJECT_AT");
    const char *const one_in = getenv("GTS_INJECT_ONE_IN");
    const char *const seed = getenv("GTS_INJECT_SEED");
    const char *const log = getenv("GTS_INJECT_LOG");
    gts_set.at = at == NULL ? 0 : atol(at);
    gts_set.one_in = one_in == NULL ? 0 : atol(one_in);
    gts_set.stays = getenv("GTS_INJECT_STAYS") != NULL;
    gts_set.random = (uint64_t)(seed == NULL ? 1 : strtoull(seed, NULL, 10)) * GOLDEN + (uint64_t)getpid();
    if (log != NULL)
        gts_set.log = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    (void)snprintf(gts_set.below, sizeof gts_set.below, "%s", below);
    gts_set.below_length = strlen(gts_set.below);
}

/* splitmix64 */
static uint64_t gts_random(void)
{
    uint64_t z = gts_set.random += GOLDEN;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void gts_path_of(int fd, char path[PATH_MAX])
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = '\0';
}

void gts_path_at(int directory, const char *name, char path[PATH_MAX])
{
    char base[PATH_MAX] = "";
    if (name[0] == '/')
        (void)snprintf(path, PATH_MAX, "%s", name);
    else {
        if (directory != AT_FDCWD)
            gts_path_of(directory, base);
        else if (getcwd(base, sizeof base) == NULL)
            base[0] = '\0';
        const size_t length = strlen(base);
        (void)snprintf(path, PATH_MAX, "%s", base);
        (void)snprintf(path + length, PATH_MAX - length, "/%s", name);
    }
}

bool gts_is_below(const char *path)
{
    return gts_set.below_length != 0 && strncmp(path, gts_set.below, gts_set.below_length) == 0 &&
           (path[gts_set.below_length] == '/' || path[gts_set.below_length] == '\0');
}

static enum fault gts_pick(bool has_bytes)
{
    if (gts_set.one_in > 0) {
        if (gts_random() % (uint64_t)gts_set.one_in != 0)
            return FAULT_NONE;
        const enum fault any = (enum fault)(1 + gts_random() % FAULT_POWER);
        const enum fault fault = gts_set.fault == FAULT_NONE ? any : gts_set.fault;
        return !has_bytes && (fault == FAULT_SHORT || fault == FAULT_TORN) ? FAULT_BEFORE : fault;
    }
    const bool hit = gts_set.at > 0 && (gts_count == gts_set.at || (gts_set.stays && gts_count > gts_set.at));
    return hit ? gts_set.fault : FAULT_NONE;
}

enum fault gts_enter(const char *call, const char *path, bool has_bytes)
{
    if (!gts_is_below(path) || (gts_set.one_in == 0 && syscall(SYS_gettid) != getpid()))
        return FAULT_NONE;
    pthread_mutex_lock(&gts_lock);
    ++gts_count;
    const enum fault fault = gts_pick(has_bytes);
    if (gts_set.log >= 0 && (fault != FAULT_NONE || gts_set.one_in == 0)) {
        char line[PATH_MAX + 64];
        const int length = snprintf(line, sizeof line, "%ld %s %s %s\n", gts_count, call, gts_fault_names[fault], path);
        (void)!syscall(SYS_write, gts_set.log, line, (size_t)length);
    }
    pthread_mutex_unlock(&gts_lock);
    return fault;
}

void gts_written(int fd)
{
    struct stat status;
    const bool is_power = gts_set.fault == FAULT_POWER || (gts_set.fault == FAULT_NONE && gts_set.one_in > 0);
    if (gts_set.below_length == 0 || !is_power || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        return; /* what is emptied stays open meanwhile */
    pthread_mutex_lock(&gts_lock);
    size_t i = 0;
    while (i < gts_dirty_count && (gts_dirty[i].device != status.st_dev || gts_dirty[i].inode != status.st_ino))
        ++i;
    if (i == gts_dirty_count && i < sizeof gts_dirty / sizeof gts_dirty[0]) {
        gts_dirty[i].device = status.st_dev;
        gts_dirty[i].inode = status.st_ino;
        gts_dirty[i].fd = fcntl(fd, F_DUPFD_CLOEXEC, 512);
        ++gts_dirty_count;
    }
    pthread_mutex_unlock(&gts_lock);
}

void gts_synced(int fd)
{
    struct stat status;
    if (gts_set.below_length == 0 || fstat(fd, &status) != 0)
        return;
    pthread_mutex_lock(&gts_lock);
    for (size_t i = 0; i < gts_dirty_count; ++i)
        if (gts_dirty[i].device == status.st_dev && gts_dirty[i].inode == status.st_ino) {
            (void)syscall(SYS_close, gts_dirty[i].fd);
            gts_dirty[i] = gts_dirty[--gts_dirty_count];
            break;
        }
    pthread_mutex_unlock(&gts_lock);
}

_Noreturn void gts_die(void)
{
    for (;;)
        (void)kill(getpid(), SIGKILL);
}

bool gts_before(enum fault fault)
{
    if (fault == FAULT_BEFORE || fault == FAULT_TORN)
        gts_die();
    if (fault == FAULT_STOP)
        (void)raise(SIGSTOP);
    if (fault == FAULT_ENOSPC || fault == FAULT_EIO || fault == FAULT_ESTALE) {
        errno = fault == FAULT_EIO ? EIO : fault == FAULT_ESTALE ? ESTALE : ENOSPC;
        return true;
    }
    return false;
}

int gts_after(enum fault fault, int result, int again)
{
    if (fault == FAULT_POWER)
        for (size_t i = 0; i < gts_dirty_count; ++i)
            (void)!syscall(SYS_ftruncate, gts_dirty[i].fd, 0L);
    if (fault == FAULT_POWER || fault == FAULT_AFTER)
        gts_die();
    if (fault != FAULT_LOST || result != 0 || again == 0)
        return result;
    errno = again;
    return -1;
}

bool gts_is_counting(void)
{
    return gts_set.below_length != 0;
}
