/*
 * Elements of a table, by which a call recognises that it is not the table that was read: a host may have changed it, or
 * have another one at the same address. They are spread over the rows and columns that calls use: a host may have more
 * rows, which stay as they are.
 *
 * A call compares words, in few instructions: a word at each of some places, and one `step` bytes after it. A word has
 * several elements, or one element and what lies between it and the next.
 */
#include <string.h>

#include "arguments/table.h"

#define WORD ((int64_t)sizeof(uint64_t))
#define MOST (2 * GTS_SAMPLES * WORD) /* bytes of all words */

/* What is used of a table, as bytes. Strides are not negative. */
typedef struct layout {
    const char *begin;
    int64_t element, bytes; /* sizes of an element, and from the first byte to the last */
    int64_t size[2], stride[2];
    bool is_small; /* words have room for the whole table */
} layout;

/* Where the words of a table are, in bytes from its beginning, and which bytes of them are its elements. */
typedef struct places {
    int64_t first[GTS_SAMPLES], step;
    uint64_t mask[GTS_SAMPLES];
} places;

static layout layout_of(const gts_array *table, const gts_table_use *use)
{
    const int64_t first[] = {use->first, __builtin_ctzll(use->columns)};
    const int64_t last[] = {gts_min(use->last, table->shape[0] - 1),
                            gts_min(63 - __builtin_clzll(use->columns), table->shape[1] - 1)};
    layout found = {.begin = table->data, .element = (int64_t)gts_dtype_size(table->dtype)};
    found.bytes = found.element;
    found.is_small = table->shape[0] <= MOST / found.element / table->shape[1];
    for (int axis = 0; axis < 2; ++axis) {
        const int64_t stride = table->strides[axis] * found.element, length = (last[axis] - first[axis]) * stride;
        found.size[axis] = last[axis] - first[axis] + 1;
        found.stride[axis] = stride < 0 ? -stride : stride;
        found.begin += first[axis] * stride + (stride < 0 ? length : 0);
        found.bytes += stride < 0 ? -length : length;
    }
    return found;
}

/* Finds words with all elements of a small table that is one piece of memory. */
static bool find_all(const layout *table, places *found)
{
    const bool is_dense = (table->stride[1] == table->element && table->stride[0] == table->size[1] * table->element) ||
                          (table->stride[0] == table->element && table->stride[1] == table->size[0] * table->element);
    if (!is_dense || table->bytes < WORD || table->bytes > MOST)
        return false;
    found->step = gts_max(table->bytes - MOST / 2, 0);
    for (int i = 0; i < GTS_SAMPLES; ++i) {
        found->first[i] = gts_min(i * WORD, table->bytes - found->step - WORD);
        found->mask[i] = UINT64_MAX;
    }
    return true;
}

/* Finds words that are spread over a larger table, from its first row to its last. */
static bool find_some(const layout *table, places *found)
{
    const int64_t more = WORD / table->element - 1; /* elements of a word after the first */
    int64_t rows = table->size[0], columns = table->size[1];
    if (table->is_small)
        return false;
    const bool is_across = table->stride[1] == table->element && columns > more;
    const bool is_down = !is_across && table->stride[0] == table->element && rows > more;
    columns -= is_across ? more : 0;
    rows -= is_down ? more : 0;
    const int64_t down = (rows + 2 * GTS_SAMPLES - 3) / (2 * GTS_SAMPLES - 1), right = columns / 2; /* within a pair */
    found->step = down * table->stride[0] + right * table->stride[1];
    for (int i = 0; i < GTS_SAMPLES; ++i) { /* no axis of any table that exists is longer than 2^48 */
        const int64_t place = i * (rows - down - 1) / (GTS_SAMPLES - 1) * table->stride[0] +
                              i % (columns - right) * table->stride[1];
        const int64_t before = place + found->step + WORD > table->bytes ? WORD - table->element : 0;
        if (before > place) /* all rows may be one, with a stride of 0 */
            return false;
        found->first[i] = place - before;
        found->mask[i] = is_across || is_down ? UINT64_MAX : 0;
        memset((char *)&found->mask[i] + before, 0xff, (size_t)table->element);
    }
    return true;
}

/*
 * Takes all elements of a small table that lie apart. One of the words that a call compares differs, so that it compares
 * these elements.
 */
static void take_elements(const layout *table, gts_samples *samples)
{
    static const uint64_t other[] = {0, UINT64_MAX};
    const int64_t count = MOST / table->element;
    char *next = (char *)samples->words;
    for (int64_t i = 0; i < count; ++i) {
        const int64_t row = i / table->size[1] % table->size[0], column = i % table->size[1];
        memcpy(next, table->begin + row * table->stride[0] + column * table->stride[1], (size_t)table->element);
        next += table->element;
    }
    for (int i = 0; i < GTS_SAMPLES; ++i)
        samples->at[i] = (const char *)&other[samples->words[0][0] == 0];
}

/* Takes the samples of a table, and tells which bytes of their words are its elements. */
static void take_samples(const gts_array *table, gts_table_use use, gts_samples *samples, uint64_t mask[GTS_SAMPLES])
{
    static const uint64_t nothing;
    places found;
    *samples = (gts_samples){.of = use};
    memset(mask, 0xff, GTS_SAMPLES * sizeof *mask);
    for (int i = 0; i < GTS_SAMPLES; ++i)
        samples->at[i] = (const char *)&nothing;
    if (table->device != GTS_CPU || gts_is_empty(table))
        return;
    const layout part = layout_of(table, &use);
    if (find_all(&part, &found) || find_some(&part, &found)) {
        samples->step = found.step;
        for (int i = 0; i < GTS_SAMPLES; ++i) {
            const char *const at = samples->at[i] = part.begin + found.first[i];
            samples->words[i] = (gts_words){gts_word_at(at), gts_word_at(at + found.step)};
        }
        memcpy(mask, found.mask, sizeof found.mask);
    } else {
        take_elements(&part, samples);
    }
}

void gts_samples_take(const gts_array *table, gts_table_use use, gts_samples *samples)
{
    uint64_t mask[GTS_SAMPLES];
    take_samples(table, use, samples, mask);
}

bool gts_samples_differ(const gts_array *table, gts_samples *samples)
{
    gts_samples now;
    uint64_t mask[GTS_SAMPLES];
    take_samples(table, samples->of, &now, mask);
    for (int i = 0; i < GTS_SAMPLES; ++i) {
        const gts_words difference = now.words[i] ^ samples->words[i];
        if (((difference[0] | difference[1]) & mask[i]) != 0)
            return true;
    }
    *samples = now;
    return false;
}
