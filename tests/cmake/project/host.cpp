// What host.c does, in C++17.
#include <array>
#include <iostream>

#include "scale_stub.h"

static gts_array array_of(std::array<double, 3> &values)
{
    gts_array array{};
    array.data = values.data();
    array.dtype = GTS_FLOAT64;
    array.device = GTS_CPU;
    array.rank = 1;
    array.shape[0] = 3;
    array.strides[0] = 1;
    return array;
}

int main()
{
    gts_program *program = nullptr;
    if (gts_open(ENTRY, &program) != 0) {
        std::cerr << gts_last_error(nullptr)->message << '\n';
        return 1;
    }
    std::array<double, 3> in{1.0, 2.0, 3.0};
    std::array<double, 3> out{};
    scale_args args{};
    args.x = array_of(in);
    args.factor = 2.5;
    args.out = array_of(out);
    const int status = scale_call(program, &args);
    if (status != 0)
        std::cerr << gts_last_error(program)->message << '\n';
    else
        std::cout << out[0] << ' ' << out[1] << ' ' << out[2] << '\n';
    gts_close(&program);
    return status != 0;
}
