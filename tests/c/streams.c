/*
 * A C host sets streams and launches graphs, on the stand-in for the CUDA runtime: streams STUB LIBRARY STUB LIBRARY,
 * of prog for a GPU and of whole for the CPU.
 */
#include "control.h"
#include "cudart.h"
#include "gtstub/stub.h"
#include "harness.h"
#include "prog_stub.h"

static gts_program *program, *on_cpu;
static struct prog_args args;

static gts_array on_gpu(void)
{
    gts_array array = {.dtype = GTS_FLOAT64, .device = GTS_CUDA, .rank = 1, .shape = {3}, .strides = {1}};
    CHECK(cudaMalloc(&array.data, 3 * sizeof(double)) == cudaSuccess);
    return array;
}

static cudaStream_t new_stream(void)
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    return stream;
}

static void call(void)
{
    CHECK(program->stub->call(program, &args) == 0);
}

/* Calls the program, which must put all its work on this stream, and nothing else. */
static void check_call(cudaStream_t stream)
{
    char expected[300];
    const int n = fake_cuda_stream_number(stream);
    (void)snprintf(expected, sizeof expected,
                   "cudaGetLastError\ncudaMallocAsync bytes=1000 stream=%d\ncudaLaunchKernel first_kernel stream=%d\n"
                   "cudaLaunchKernel second_kernel stream=%d\ncudaFreeAsync stream=%d\ncudaGetLastError\n",
                   n, n, n, n);
    call(); /* sees the arrays again after a graph */
    fake_cuda_clear();
    call();
    CHECK_TEXT(fake_cuda_log(), expected);
}

static void set_streams(void)
{
    const cudaStream_t own = new_stream(), common = new_stream();
    CHECK(gts_stream(program) == NULL);
    check_call(NULL);
    CHECK(gts_set_stream(program, own) == 0);
    CHECK(gts_stream(program) == own && gts_stream(NULL) == NULL);
    check_call(own);
    CHECK(gts_set_stream(NULL, common) == 0);
    CHECK(gts_stream(program) == own && gts_stream(NULL) == common);
    check_call(own);
    CHECK(gts_reset_stream(program) == 0);
    CHECK(gts_stream(program) == common);
    check_call(common);
    CHECK(gts_set_stream(NULL, NULL) == 0);
    check_call(NULL);
}

static void refuse_streams(void)
{
    const cudaStream_t destroyed = new_stream();
    char text[300];
    CHECK(cudaStreamDestroy(destroyed) == cudaSuccess);
    (void)snprintf(
        text, sizeof text,
        "Program 'prog' cannot use the stream %p: error 400 (cudaErrorInvalidResourceHandle: invalid resource "
        "handle).",
        (void *)destroyed);
    CHECK(gts_set_stream(program, destroyed) == -1);
    CHECK_ERROR(gts_last_error(program), GTS_VALUE_ERROR, text);
    CHECK(gts_set_stream(NULL, destroyed) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_VALUE_ERROR, text);
    CHECK(gts_stream(program) == NULL && gts_stream(NULL) == NULL);
    check_call(NULL);

    static const char has_none[] = "Program 'whole' runs on the CPU and has no stream.";
    CHECK(gts_set_stream(on_cpu, NULL) == -1);
    CHECK_ERROR(gts_last_error(on_cpu), GTS_VALUE_ERROR, has_none);
    CHECK(gts_reset_stream(on_cpu) == -1);
    CHECK_ERROR(gts_last_error(on_cpu), GTS_VALUE_ERROR, has_none);
    CHECK(gts_reset_stream(NULL) == -1);
    CHECK_ERROR(gts_last_error(NULL), GTS_RUNTIME_ERROR, "The program is not open: it was closed, or never opened.");
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    CHECK(gts_load(argv[1], argv[2], &program) == 0);
    CHECK(gts_load(argv[3], argv[4], &on_cpu) == 0);
    args = (struct prog_args){.x = on_gpu(), .factor = 1, .out = on_gpu()};
    call();
    set_streams();
    refuse_streams();
    gts_close(&program);
    gts_close(&on_cpu);
    return 0;
}
