/* What the CPU of this machine can do. */
#define _GNU_SOURCE
#include "base/cpu.h"
#include "base/lock.h"
#include "base/new.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __aarch64__

#include <sys/auxv.h>
#include <sys/prctl.h>

/*
 * The features that compilers use by themselves, as in generator/gtstub/entries/toolchain/cpu.py. The auxiliary vector
 * belongs to the process, also in an emulator, which shows the /proc/cpuinfo of the machine that it runs on.
 */
static const struct {
    const char *name;
    unsigned char word; /* AT_HWCAP or AT_HWCAP2 */
    unsigned char bit;
} FEATURES[] = {
    {"asimd", AT_HWCAP, 1},       {"aes", AT_HWCAP, 3},        {"sha2", AT_HWCAP, 6},       {"crc32", AT_HWCAP, 7},
    {"atomics", AT_HWCAP, 8},     {"fphp", AT_HWCAP, 9},       {"asimdhp", AT_HWCAP, 10},   {"asimdrdm", AT_HWCAP, 12},
    {"jscvt", AT_HWCAP, 13},      {"fcma", AT_HWCAP, 14},      {"lrcpc", AT_HWCAP, 15},     {"sha3", AT_HWCAP, 17},
    {"sm3", AT_HWCAP, 18},        {"sm4", AT_HWCAP, 19},       {"asimddp", AT_HWCAP, 20},   {"sha512", AT_HWCAP, 21},
    {"sve", AT_HWCAP, 22},        {"asimdfhm", AT_HWCAP, 23},  {"sve2", AT_HWCAP2, 1},      {"sveaes", AT_HWCAP2, 2},
    {"svebitperm", AT_HWCAP2, 4}, {"svesha3", AT_HWCAP2, 5},   {"svesm4", AT_HWCAP2, 6},    {"frint", AT_HWCAP2, 8},
    {"svei8mm", AT_HWCAP2, 9},    {"svef32mm", AT_HWCAP2, 10}, {"svef64mm", AT_HWCAP2, 11}, {"svebf16", AT_HWCAP2, 12},
    {"i8mm", AT_HWCAP2, 13},      {"bf16", AT_HWCAP2, 14},     {"sme", AT_HWCAP2, 23},      {"cssc", AT_HWCAP2, 34},
    {"sve2p1", AT_HWCAP2, 36},    {"sme2", AT_HWCAP2, 37},     {"mops", AT_HWCAP2, 43},
};

/* Whether "sve256", for example, names the length of the vectors here. */
static bool has_vectors(const char *name, size_t length)
{
    static const char sve[] = "sve";
    char *end;
    const size_t digits = sizeof sve - 1;
    if (length <= digits || strncmp(name, sve, digits) != 0 || (getauxval(AT_HWCAP) >> 22 & 1) == 0)
        return false;
    const long bits = strtol(name + digits, &end, 10);
    const int found = prctl(PR_SVE_GET_VL);
    return end == name + length && found >= 0 && bits == 8L * (found & PR_SVE_VL_LEN_MASK);
}

static bool has(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof FEATURES / sizeof *FEATURES; ++i) {
        if (strlen(FEATURES[i].name) == length && strncmp(FEATURES[i].name, name, length) == 0)
            return (getauxval(FEATURES[i].word) >> FEATURES[i].bit & 1) != 0;
    }
    return has_vectors(name, length);
}

#else

GTS_LOCK(reading)

/*
 * The line of the first processor in /proc/cpuinfo that lists its features, or a text without blanks. It is read once:
 * some kernels take 20 ms for this file.
 */
static const char *known_features(void)
{
    static char *known;
    pthread_mutex_lock(&reading);
    if (known == NULL) {
        FILE *const file = fopen("/proc/cpuinfo", "re");
        size_t room = 0;
        bool is_found = false;
        while (file != NULL && !is_found && getline(&known, &room, file) > 0)
            is_found = strncmp(known, "flags", 5) == 0;
        if (file != NULL)
            fclose(file);
        if (!is_found) {
            free(known);
            known = gts_new_text("%s", "");
        }
    }
    pthread_mutex_unlock(&reading);
    return known;
}

static bool has(const char *name, size_t length)
{
    const char *const features = known_features();
    for (const char *at = strchr(features, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        if (strncmp(at + 1, name, length) == 0 && strchr(" \n", at[1 + length]) != NULL)
            return true;
    }
    return *features == '\0';
}

#endif

size_t gts_lacks_feature(const char *needed, const char **lacking)
{
    for (const char *at = needed; *at != '\0';) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, " ");
        if (length > 0 && !has(at, length)) {
            *lacking = at;
            return length;
        }
        at += length;
    }
    return 0;
}
