/* The sizes of arrays of DaCe programs: powers and quotients, and symbols that follow from sizes. */
#include <inttypes.h>

#include "base/refuse.h"
#include "program/counting.h"

uint64_t gts_power(uint64_t base, uint64_t exponent)
{
    const int64_t factor = (int64_t)base;
    int64_t power = 1;
    if ((int64_t)exponent < 0)
        return 0;
    if (factor == 0 || factor == 1 || factor == -1) /* which no number of steps makes too large */
        exponent = exponent == 0 ? 0 : 2 - exponent % 2;
    for (uint64_t i = 0; i < exponent; ++i) {
        if (__builtin_mul_overflow(power, factor, &power))
            return INT64_MAX;
    }
    return (uint64_t)power;
}

uint64_t gts_int_floor(uint64_t numerator, uint64_t divisor)
{
    if (divisor == 0)
        return 0;
    if (divisor == UINT64_MAX) /* -1, by which INT64_MIN must not be divided */
        return 0 - numerator;
    return (uint64_t)((int64_t)numerator / (int64_t)divisor);
}

uint64_t gts_int_ceil(uint64_t numerator, uint64_t divisor)
{
    return gts_int_floor(numerator + divisor - 1, divisor);
}

int gts_solve(gts_program *self, uint32_t index, int32_t axis, unsigned int property, uint64_t numerator,
              uint64_t divisor, const char *symbol, const char *text, int64_t *value)
{
    const gts_contract *const leaf = &self->stub->leaves[index];
    const gts_array *const array = gts_array_of(self, index);
    const char *const name = property == GTS_SIZE ? "size" : "stride";
    const int64_t found = property == GTS_SIZE ? array->shape[axis] : array->strides[axis];
    const gts_short_text where = gts_axis_text(self, axis);
    const uint64_t quotient = gts_int_floor(numerator, divisor);
    *value = (int64_t)quotient;
    if (GTS_UNLIKELY(divisor == 0 && numerator == 0))
        return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR,
                          "has %s %" PRId64 " on %s ('%s'), which %s is for any '%s': pass '%s=...'.", name, found,
                          where.text, leaf->axes[axis].dim, text, symbol, symbol);
    if (GTS_UNLIKELY(quotient * divisor != numerator))
        return GTS_REFUSE(self, leaf, GTS_VALUE_ERROR,
                          "has %s %" PRId64 " on %s ('%s'), but no integer '%s' makes %s equal to it.", name, found,
                          where.text, leaf->axes[axis].dim, symbol, text);
    return 0;
}
