/*
 * Replays, and what is wrong with them. Arguments: an archive of record.c in all ways, one of 'whole', and the libraries.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gtstub/replay.h"
#include "prog_stub.h"
#include "whole.h"

static const char *archive, *archive_of_whole, *prog_stub, *prog_library, *spoiled_library, *whole_stub, *whole_library;

static gts_replay *open_archive(const char *path)
{
    gts_replay *replay;
    if (gts_replay_open(path, &replay) == 0)
        return replay;
    fprintf(stderr, "%s\n", gts_last_error(NULL)->message);
    exit(1);
}

static void end(gts_replay *replay)
{
    char *const report = gts_replay_close(&replay);
    CHECK(report != NULL && replay == NULL);
    free(report);
}

/* ---- Calls ----------------------------------------------------------------------------------------------------- */

static void test_calls_that_are_as_recorded(void)
{
    gts_replay *const replay = open_archive(archive);
    gts_program *program = load(prog_stub, prog_library);
    CHECK(gts_replay_count(replay) == 6);
    for (int round = 0; round < 2; ++round) {
        for (size_t i = 0; i < 6; ++i) {
            CHECK_TEXT(gts_replay_program(replay, i), "prog");
            CHECK(gts_replay_call(replay, i, program) == 0);
        }
    }
    gts_close(&program);
    end(replay);
}

static void test_what_differs_is_reported(void)
{
    gts_replay *replay = open_archive(archive);
    gts_program *program = load(prog_stub, spoiled_library);
    size_t worst;
    const char *argument;
    CHECK(gts_replay_call(replay, 4, program) == 0); /* of fields without elements */
    CHECK(gts_replay_worst(replay, &worst, &argument) == NULL);
    CHECK(gts_replay_call(replay, 1, program) == 1);
    const double *const found = gts_replay_worst(replay, &worst, &argument);
    CHECK(found != NULL && worst == 1 && found[2] == 2.3000000000000012);
    CHECK_TEXT(argument, "out");
    CHECK(gts_replay_tolerate(replay, NULL, 3) == 0);
    CHECK(gts_replay_call(replay, 1, program) == 0);
    CHECK(gts_replay_tolerate(replay, "out", 2) == 0);
    CHECK(gts_replay_call(replay, 1, program) == 1);
    char *const report = gts_replay_close(&replay);
    CHECK(strstr(report, "{\"program\": \"prog\", \"call\": 3, \"argument\": \"out\", \"dtype\": \"float64\",\n"
                         "  \"dims\": [\"K\"],\n  \"elements\": 4, \"tolerance\": 0, \"differ\": 1, \"beyond\": 1,\n"
                         "  \"worst\": {\"index\": [9], \"expected\": 2.2999999999999998, "
                         "\"found\": 2.3000000000000012, \"ulp\": 3, \"absolute\": 1.33227e-15, "
                         "\"relative\": 5.79247e-16}}") != NULL);
    CHECK(strstr(report, "\"tolerance\": 3, \"differ\": 1, \"beyond\": 0") != NULL);
    CHECK(strstr(report, "\"tolerance\": 2, \"differ\": 1, \"beyond\": 1") != NULL);
    free(report);
    gts_close(&program);
}

/* All calls as one step give what single calls give; after an error nothing has been compared. */
static void test_a_step(void)
{
    gts_replay *replay = open_archive(archive);
    gts_program *program = load(prog_stub, prog_library), *spoiled = load(prog_stub, spoiled_library);
    const size_t calls[] = {5, 0, 1, 2, 3, 4, 1};
    gts_program *programs[] = {program, program, program, program, program, program, program};
    CHECK(gts_replay_step(replay, calls, programs, 7) == 0);
    CHECK(gts_replay_step(replay, calls, programs, 0) == 0);
    programs[6] = spoiled;
    CHECK(gts_replay_step(replay, calls, programs, 7) == 1);
    size_t worst;
    const char *argument;
    CHECK(gts_replay_worst(replay, &worst, &argument) != NULL && worst == 1);
    const size_t missing[] = {0, 6};
    CHECK(gts_replay_step(replay, missing, programs, 2) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR, "The recording has 6 calls, counted from 0, and no call 6.");
    programs[1] = NULL;
    CHECK(gts_replay_step(replay, calls, programs, 2) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_RUNTIME_ERROR, "The program is not open: it was closed, or never opened.");
    gts_program *whole = programs[1] = load(whole_stub, whole_library);
    CHECK(gts_replay_step(replay, calls, programs, 2) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR,
                "A call of program 'prog' was recorded; it cannot be replayed on 'whole'.");
    gts_close(&whole);
    gts_close(&spoiled);
    gts_close(&program);
    char *const report = gts_replay_close(&replay);
    size_t comparisons = 0;
    for (const char *place = report; (place = strstr(place, "\"program\"")) != NULL; ++place)
        ++comparisons;
    CHECK(comparisons == 14);
    free(report);
}

static void test_a_host_compares_what_it_has_made_itself(void)
{
    gts_replay *replay = open_archive(archive);
    double made[] = {2.5, 6, 9.5};
    gts_array found = {.data = made, .dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .shape = {3}, .strides = {1}};
    CHECK(gts_replay_compare(replay, 0, "out", &found) == 0);
    made[1] = (double)NAN;
    CHECK(gts_replay_compare(replay, 0, "out", &found) == 1);
    CHECK(gts_replay_compare(replay, 0, "x", &found) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR,
                "Argument 'x' of program 'prog' is not one that the recorded call has written.");
    found.shape[0] = 2;
    CHECK(gts_replay_compare(replay, 0, "out", &found) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR,
                "Argument 'out' of program 'prog' must have the type and the shape that were recorded.");
    found.shape[0] = 3;
    found.device = GTS_CUDA;
    CHECK(gts_replay_compare(replay, 0, "out", &found) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR,
                "Argument 'out' of program 'prog' must be in host memory to be compared, not on device 'cuda'.");
    found.device = GTS_CPU;
    found.data = NULL;
    CHECK(gts_replay_compare(replay, 0, "out", &found) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR,
                "Argument 'out' of program 'prog' has no memory: its pointer is NULL.");
    found.shape[0] = 0;
    CHECK(gts_replay_compare(replay, 4, "out", &found) == 0); /* nothing is where no elements are */
    char *const report = gts_replay_close(&replay);
    CHECK(strstr(report, "\"index\": [1], \"expected\": 6, \"found\": \"nan\", \"ulp\": null, \"absolute\": \"nan\"") !=
          NULL);
    free(report);
}

static void test_layouts_are_as_recorded(void)
{
    gts_replay *const replay = open_archive(archive_of_whole);
    gts_program *program = load(whole_stub, whole_library);
    const struct recorder recorder = open_recorder(whole_library);
    CHECK(gts_replay_count(replay) == 2);
    CHECK(gts_replay_is_of(replay, 1, program));
    CHECK(gts_replay_call(replay, 1, program) == 0);
    const struct record call = last_record(&recorder);
    CHECK((int32_t)call.values[SLOT_VN_STRIDE] == 8);
    CHECK((int32_t)call.values[SLOT_OUT_0_STRIDE] == -EDGES);
    CHECK((int32_t)call.values[SLOT_OUT_0_START] == -2);
    CHECK((int32_t)call.values[SLOT_X_1_0] == 7);
    CHECK(gts_set_index_base(program, "E2V", 1) == 0);
    CHECK(gts_replay_call(replay, 1, program) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_VALUE_ERROR,
                "Connectivity 'E2V' of program 'whole' has index base 1, but recorded tables count from 0; open the "
                "program anew.");
    gts_close(&program);
    recorder.clear();
    end(replay);
}

static void test_what_cannot_be_replayed(void)
{
    gts_replay *const replay = open_archive(archive);
    gts_replay *const of_whole = open_archive(archive_of_whole);
    gts_program *program = load(prog_stub, prog_library);
    CHECK(gts_replay_tolerate(replay, "y", 1) == -1);
    char text[PATH_MAX + 100];
    (void)snprintf(text, sizeof text, "No program of recording '%s' has an argument 'y'.", archive);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR, text);
    CHECK(!gts_replay_is_of(of_whole, 0, program));
    CHECK(gts_replay_call(of_whole, 0, program) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_VALUE_ERROR,
                "A call of program 'whole' was recorded; it cannot be replayed on 'prog'.");
    CHECK(gts_replay_call(replay, 0, program) == 0);
    gts_close(&program);
    CHECK(!gts_replay_is_of(replay, 0, program));
    end(replay);
    end(of_whole);
}

static void test_calls_that_are_not_there(void)
{
    gts_replay *const replay = open_archive(archive);
    gts_program *program = load(prog_stub, prog_library);
    const gts_array found = {.dtype = GTS_FLOAT64, .device = GTS_CPU, .rank = 1, .strides = {1}};
    static const char message[] = "The recording has 6 calls, counted from 0, and no call 6.";
    CHECK(gts_replay_call(replay, 6, program) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_VALUE_ERROR, message);
    CHECK(gts_replay_compare(replay, 6, "out", &found) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR, message);
    CHECK(gts_replay_program(replay, 6) == NULL);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR, message);
    CHECK(!gts_replay_is_of(replay, 6, program));
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR, message);
    gts_close(&program);
    end(replay);
}

/* ---- Archives -------------------------------------------------------------------------------------------------- */

static char *read_all(const char *directory, const char *name, size_t *size)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *const file = fopen(path, "r");
    CHECK(file != NULL);
    static char text[1 << 16];
    *size = fread(text, 1, sizeof text - 1, file);
    text[*size] = '\0';
    CHECK(fclose(file) == 0);
    return text;
}

/* Makes the index of the archive "spoiled" one of `size` bytes. */
static void write_index(const char *text, size_t size)
{
    CHECK(mkdir("spoiled", 0777) == 0 || errno == EEXIST);
    FILE *const file = fopen("spoiled/recording.txt", "w");
    CHECK(file != NULL && fwrite(text, 1, size, file) == size && fclose(file) == 0);
}

/* However much a process could write before it was killed, the calls that are whole are there. */
static void test_an_index_that_ends_anywhere(void)
{
    size_t size, before = 0;
    const char *const text = read_all(archive, "recording.txt", &size);
    for (size_t end_ = 0; end_ <= size; ++end_) {
        write_index(text, end_);
        gts_replay *const replay = open_archive("spoiled");
        const size_t count = gts_replay_count(replay);
        CHECK(count == before || (count == before + 1 && text[end_ - 1] == '\n'));
        before = count;
        end(replay);
    }
    CHECK(before == 6);
}

static void test_an_index_that_is_wrong(void)
{
    const struct {
        const char *find, *replace;
    } spoils[] = {{"recording/1", "recording/2"},
                  {"float64", "float63"},
                  {"field", "fields"},
                  {"leaf", "left"},
                  {"call\tprog", "call\tpr"},
                  {"value\t1\t0\t-1\t0\t0\t3", "value\t1\t0\t-1\t0\t0\t-3"},
                  {"call\tprog\t1", "call\tprog\t0"},
                  {"value\t1\t0\t-1\t0\t0", "value\t1\t0\t-1\t9\t0"},
                  {"value\t1", "value\tx"},
                  {"program\tprog", "program\t../prog"},
                  {"leaf\tx\t", "leaf\t../x\t"},
                  {"\t0\t1\tK", "\t0\t7\tK"}};
    for (unsigned int i = 0; i < sizeof spoils / sizeof *spoils; ++i) {
        size_t size;
        char *const text = read_all(archive, "recording.txt", &size);
        char *const place = strstr(text, spoils[i].find);
        CHECK(place != NULL);
        char changed[1 << 16];
        (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(place - text), text, spoils[i].replace,
                       place + strlen(spoils[i].find));
        write_index(changed, strlen(changed));
        gts_replay *replay;
        CHECK(gts_replay_open("spoiled", &replay) == -1 && replay == NULL);
        CHECK(gts_last_error(NULL)->kind == GTS_VALUE_ERROR);
        CHECK(strstr(gts_last_error(NULL)->message, "The recording 'spoiled' is malformed in line ") != NULL);
    }
}

/* Replaces all occurrences of a text. */
static void replace_all(char *text, size_t size, const char *old, const char *new)
{
    for (char *place = text; (place = strstr(place, old)) != NULL; place += strlen(new)) {
        CHECK(strlen(text) + strlen(new) < size);
        (void)memmove(place + strlen(new), place + strlen(old), strlen(place + strlen(old)) + 1);
        (void)memcpy(place, new, strlen(new));
    }
}

/* A scalar with an axis would have no element, or more than one. */
static void test_a_scalar_with_an_axis(void)
{
    size_t size;
    char text[1 << 16];
    (void)snprintf(text, sizeof text, "%s", read_all(archive, "recording.txt", &size));
    replace_all(text, sizeof text, "scalar\tfloat64\t0\t0\n", "scalar\tfloat64\t0\t1\tK\n");
    const char *const leaf = strstr(text, "\tscalar\tfloat64");
    CHECK(leaf != NULL);
    unsigned int before = 0; /* leaves of the program in front of the scalar */
    for (const char *line = strstr(text, "\nleaf"); line != NULL && line < leaf; line = strstr(line + 1, "\nleaf"))
        ++before;
    for (char *call = strstr(text, "\ncall"); call != NULL; call = strstr(call + 1, "\ncall")) {
        char *end_of_line = call;
        for (unsigned int i = 0; i <= before; ++i)
            end_of_line = strchr(end_of_line + 1, '\n');
        (void)memmove(end_of_line + 6, end_of_line, strlen(end_of_line) + 1);
        (void)memcpy(end_of_line, "\t0\t0\t1", 6);
    }
    write_index(text, strlen(text));
    gts_replay *replay;
    CHECK(gts_replay_open("spoiled", &replay) == -1 && replay == NULL);
    CHECK(strstr(gts_last_error(NULL)->message, "The recording 'spoiled' is malformed in line ") != NULL);
}

static void test_a_recording_that_is_no_file(void)
{
    CHECK(unlink("spoiled/recording.txt") == 0 && mkfifo("spoiled/recording.txt", 0666) == 0);
    gts_replay *replay;
    CHECK(gts_replay_open("spoiled", &replay) == -1 && replay == NULL);
    CHECK(unlink("spoiled/recording.txt") == 0);
}

static void test_values_that_are_missing(void)
{
    size_t size;
    const char *const text = read_all(archive, "recording.txt", &size);
    write_index(text, size);
    gts_replay *const replay = open_archive("spoiled");
    gts_program *program = load(prog_stub, prog_library);
    CHECK(gts_replay_call(replay, 0, program) == -1);
    CHECK_ERROR(
        gts_last_error(program), GTS_RUNTIME_ERROR,
        "Recording 'spoiled' lacks a value of argument 'x' of program 'prog': 'prog/prog_x.dat' cannot be read, "
        "or is shorter than the index says.");
    gts_close(&program);
    end(replay);
}

static void test_an_archive_that_is_not_there(void)
{
    gts_replay *replay;
    CHECK(gts_replay_open("nowhere", &replay) == -1 && replay == NULL);
    CHECK_ERROR(
        gts_last_error(NULL), GTS_RUNTIME_ERROR,
        "There is no recording at 'nowhere': 'recording.txt' cannot be read. A recording is the directory of one "
        "process, as 'recording/host-1234'.");
    CHECK(gts_replay_close(&replay) == NULL);
}

int main(int argc, char **argv)
{
    CHECK(argc == 8);
    archive = argv[1];
    archive_of_whole = argv[2];
    prog_stub = argv[3];
    prog_library = argv[4];
    spoiled_library = argv[5];
    whole_stub = argv[6];
    whole_library = argv[7];
    test_calls_that_are_as_recorded();
    test_what_differs_is_reported();
    test_a_step();
    test_a_host_compares_what_it_has_made_itself();
    test_layouts_are_as_recorded();
    test_what_cannot_be_replayed();
    test_calls_that_are_not_there();
    test_an_index_that_ends_anywhere();
    test_an_index_that_is_wrong();
    test_a_scalar_with_an_axis();
    test_a_recording_that_is_no_file();
    test_values_that_are_missing();
    test_an_archive_that_is_not_there();
    return 0;
}
