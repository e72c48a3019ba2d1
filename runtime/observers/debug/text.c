/* Reads the text of debug checks: "nan; min delp*=0; range u=-280:280; trace 3,4,0; only diffuse*; warn". */
#define _GNU_SOURCE
#include "observers/debug/text.h"

#include <ctype.h>
#include <float.h>
#include <fnmatch.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/new.h"

/* The checks of NDSL: every name that contains one of these. */
static const char FV3[] = "min *delp*=0; min *qvapor*=-1e-8; min *qliquid*=-1e-8; min *qrain*=-1e-8; "
                          "min *qice*=-1e-8; min *qsnow*=-1e-8; min *qgraupel*=-1e-8; min *qo3mr*=-1e-8; "
                          "min *qsgs_tke*=-1e-8; min *qcld*=-1e-8";

/* The state of reading. */
typedef struct reader {
    gts_checks *checks;
    char *end; /* of checks->text */
    bool is_preset;
} reader;

/* The kinds of items, and their forms. */
typedef enum kind { FINITE, NAN_ALONE, MIN, MAX, RANGE, TRACE, PROGRESS, BOUNDS, ONLY, WARN, PRESET, KINDS } kind;

static const char *const FORMS[KINDS] = {
    [FINITE] = "finite",
    [NAN_ALONE] = "nan",
    [MIN] = "min PATTERN=NUMBER",
    [MAX] = "max PATTERN=NUMBER",
    [RANGE] = "range PATTERN=NUMBER:NUMBER",
    [TRACE] = "trace INDEX,INDEX,...",
    [PROGRESS] = "progress",
    [BOUNDS] = "bounds [start|end]",
    [ONLY] = "only PATTERN",
    [WARN] = "warn",
    [PRESET] = "fv3",
};

/* What a reader of items returns besides 0 and -1: the item does not have its form. */
enum { WRONG_FORM = 1 };

static int read_items(reader *self, const char *text);

/* ---- Texts ----------------------------------------------------------------------------------------------------- */

/* Removes the blanks at both ends. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        ++text;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        --length;
    text[length] = '\0';
    return text;
}

/* Keeps a text as long as the checks. */
static char *keep(reader *self, const char *text, size_t length)
{
    char *const kept = self->end;
    memcpy(kept, text, length);
    kept[length] = '\0';
    self->end += length + 1;
    return kept;
}

/* Reads a number that fills its text, with the decimal point of C in any locale. */
static bool read_number(const char *text, double *number)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char *end;
    if (c == (locale_t)0)
        return false;
    *number = strtod_l(text, &end, c);
    freelocale(c);
    return end != text && *end == '\0' && !isnan(*number);
}

/* ---- Items ----------------------------------------------------------------------------------------------------- */

static int read_limit(const char *item, const char *text, double *limit)
{
    if (read_number(text, limit))
        return 0;
    return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "The limit of check '%s' must be a number, not '%s'.", item,
                         text);
}

static void add_rule(reader *self, const char *item, const char *pattern, gts_limits limits)
{
    self->checks->rules[self->checks->rule_count++] = (gts_rule){{pattern, item, self->is_preset, false}, limits};
}

static int read_limits(reader *self, kind kind, const char *item, char *rest)
{
    gts_limits limits = GTS_NO_LIMITS;
    char *const equals = strrchr(rest, '=');
    char *const colon = equals == NULL || kind != RANGE ? NULL : strchr(equals, ':');
    if (equals == NULL || (kind == RANGE && colon == NULL))
        return WRONG_FORM;
    *equals = '\0';
    if (colon != NULL)
        *colon = '\0';
    const char *const pattern = trim(rest);
    if (*pattern == '\0')
        return WRONG_FORM;
    if (kind != MAX)
        GTS_TRY(read_limit(item, trim(equals + 1), &limits.low));
    if (kind != MIN)
        GTS_TRY(read_limit(item, trim((kind == MAX ? equals : colon) + 1), &limits.high));
    if (limits.low > limits.high)
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "The lower limit of check '%s' is above the upper one.",
                             item);
    add_rule(self, item, pattern, limits);
    return 0;
}

static int read_trace(reader *self, const char *item, char *rest)
{
    gts_trace trace = {.fields = {"*", item, self->is_preset, false}};
    for (bool is_done = false; !is_done; ++trace.rank) {
        char *end;
        if (trace.rank == GTS_MAX_RANK)
            return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Check '%s' has more than %d indices.", item,
                                 GTS_MAX_RANK);
        trace.index[trace.rank] = strtoll(rest, &end, 10);
        if (end == rest)
            return WRONG_FORM;
        rest = trim(end);
        is_done = *rest == '\0';
        if (!is_done && *rest++ != ',')
            return WRONG_FORM;
    }
    self->checks->traces[self->checks->trace_count++] = trace;
    return 0;
}

static int read_bounds(reader *self, const char *rest)
{
    if (*rest != '\0' && strcmp(rest, "end") != 0 && strcmp(rest, "start") != 0)
        return WRONG_FORM;
    self->checks->guarded = *rest == '\0'              ? GTS_GUARDED_BY_TURNS
                            : strcmp(rest, "end") == 0 ? GTS_GUARDED_END
                                                       : GTS_GUARDED_START;
    return 0;
}

static int read_preset(reader *self, const char *text)
{
    reader preset = *self;
    preset.is_preset = true;
    const int status = read_items(&preset, text);
    self->end = preset.end;
    return status;
}

/* Reads an item after its first word. */
static int read_rest(reader *self, kind kind, const char *item, char *rest)
{
    const bool takes_text = strchr(FORMS[kind], ' ') != NULL;
    if (kind != BOUNDS && takes_text != (*rest != '\0'))
        return WRONG_FORM;
    switch (kind) {
    case MIN:
    case MAX:
    case RANGE:
        return read_limits(self, kind, item, rest);
    case TRACE:
        return read_trace(self, item, rest);
    case BOUNDS:
        return read_bounds(self, rest);
    case PRESET:
        return read_preset(self, FV3);
    case ONLY:
        self->checks->only[self->checks->only_count++] = (gts_pattern){rest, item, self->is_preset, false};
        return 0;
    case NAN_ALONE:
        add_rule(self, item, NULL, (gts_limits){-INFINITY, INFINITY, true});
        return 0;
    case FINITE:
        add_rule(self, item, NULL, (gts_limits){-DBL_MAX, DBL_MAX, true});
        return 0;
    case PROGRESS:
        self->checks->shows_progress = true;
        return 0;
    default:
        self->checks->warns = true;
        return 0;
    }
}

static int read_item(reader *self, const char *item)
{
    char *const word = keep(self, item, strlen(item));
    const size_t length = strcspn(word, " \t\r\n\v\f");
    char *const rest = trim(word + length);
    word[length] = '\0';
    for (kind kind = 0; kind < KINDS; ++kind) {
        const char *const form = FORMS[kind];
        if (strlen(word) != strcspn(form, " ") || strncmp(word, form, strlen(word)) != 0)
            continue;
        const int status = read_rest(self, kind, item, rest);
        if (status != WRONG_FORM)
            return status;
        return gts_error_set(&gts_own_error, GTS_VALUE_ERROR, "Check '%s' must have the form '%s'.", item, form);
    }
    return gts_error_set(
        &gts_own_error, GTS_VALUE_ERROR,
        "Check '%s' is not known; a check begins with 'finite', 'nan', 'min', 'max', 'range', 'trace', "
        "'progress', 'bounds', 'only', 'warn' or 'fv3'.",
        item);
}

/* Reads items that are separated by semicolons. Empty ones mean nothing. */
static int read_items(reader *self, const char *text)
{
    while (*text != '\0') {
        const size_t length = strcspn(text, ";");
        const char *const item = trim(keep(self, text, length));
        if (*item != '\0')
            GTS_TRY(read_item(self, item));
        text += length + (text[length] == ';');
    }
    return 0;
}

/* ---- Checks ---------------------------------------------------------------------------------------------------- */

static size_t count_items(const char *text)
{
    size_t count = 1;
    for (; *text != '\0'; ++text)
        count += *text == ';';
    return count;
}

gts_checks *gts_checks_read(const char *text)
{
    gts_checks *const self = gts_new(1, sizeof *self);
    const size_t items = count_items(text) * count_items(FV3); /* at most: each may be the preset */
    /* Each item is kept twice, as a whole and cut into its parts, and each part ends with a 0. */
    self->text = gts_new(2, strlen(text) + items * (sizeof FV3 + 1));
    self->rules = gts_new(items, sizeof *self->rules);
    self->traces = gts_new(items, sizeof *self->traces);
    self->only = gts_new(items, sizeof *self->only);
    reader reader = {self, self->text, false};
    if (read_items(&reader, text) != 0) {
        gts_checks_free(self);
        return NULL;
    }
    return self;
}

void gts_checks_free(gts_checks *self)
{
    if (self == NULL)
        return;
    free(self->text);
    free(self->rules);
    free(self->traces);
    free(self->only);
    free(self);
}

bool gts_pattern_selects(gts_pattern *self, const char *name)
{
    if (strcmp(self->pattern, name) != 0 && fnmatch(self->pattern, name, 0) != 0)
        return false;
    self->has_matched = true;
    return true;
}
