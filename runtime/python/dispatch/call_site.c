/* Call sites: the keywords that one place in the source passes are checked once. */
#include "python/dispatch/dispatcher.h"

static GTS_COLD int refuse_missing(const gts_py_dispatcher *self, const bool *passed)
{
    PyObject *const missing[] = {PyList_New(0), PyList_New(0)}; /* positional and keyword-only */
    const uint32_t count = (uint32_t)PyTuple_GET_SIZE(self->parameters);
    bool failed = missing[0] == NULL || missing[1] == NULL;
    for (uint32_t i = 0, next = 0; i <= count && !failed; ++i) {
        const bool is_positional = next < self->positional_count && self->positional[next] == i;
        next += is_positional;
        if (self->bound[i] != NULL || passed[i])
            continue;
        PyObject *const name = i < count ? PyTuple_GET_ITEM(self->parameters, i) : self->state->name.offset_provider;
        failed = PyList_Append(missing[!is_positional], name) < 0;
    }
    if (!failed) {
        const bool only_keywords = PyList_GET_SIZE(missing[0]) == 0; /* Python reports positional ones first */
        (void)gts_py_refuse_missing(self->utf8, only_keywords ? "keyword-only" : "positional", missing[only_keywords]);
    }
    Py_XDECREF(missing[0]);
    Py_XDECREF(missing[1]);
    return -1;
}

/* Checks which parameters a call passes, and finds the parameter of each argument. */
static int check(const gts_py_dispatcher *self, gts_py_site *site)
{
    bool passed[GTS_PY_MAX_PARAMETERS + 1] = {false};
    const Py_ssize_t count = PyTuple_GET_SIZE(self->parameters);
    const Py_ssize_t taken = (Py_ssize_t)self->positional_count;
    const Py_ssize_t keyword_count = site->call.keywords == NULL ? 0 : PyTuple_GET_SIZE(site->call.keywords);
    for (Py_ssize_t i = 0; i < site->call.given && i < taken; ++i) {
        passed[self->positional[i]] = true;
        site->place[i] = self->positional[i];
    }
    for (Py_ssize_t i = 0; i < keyword_count; ++i) {
        PyObject *const keyword = PyTuple_GET_ITEM(site->call.keywords, i);
        Py_ssize_t place = gts_py_find_name(self->parameters, keyword);
        if (place >= 0 && self->bound[place] != NULL && !self->overridable)
            place = -1;
        else if (place < 0 && PyUnicode_Compare(self->state->name.offset_provider, keyword) == 0)
            place = count;
        if (place < 0 || passed[place])
            return gts_py_refuse_keyword(self->utf8, keyword, place >= 0);
        passed[place] = true;
        if (site->call.given <= taken)
            site->place[site->call.given + i] = (uint8_t)place;
    }
    if (site->call.given > taken)
        return gts_py_refuse_surplus(self->utf8, taken, site->call.given, keyword_count);
    for (Py_ssize_t i = 0; i <= count; ++i) {
        if (self->bound[i] == NULL && !passed[i])
            return refuse_missing(self, passed);
    }
    site->passed = (uint32_t)(site->call.given + keyword_count);
    site->selects = passed[count];
    for (uint32_t i = 0; i < self->static_count; ++i)
        site->selects = site->selects || passed[self->statics[i].parameter];
    return 0;
}

bool gts_py_is_plain(PyObject *keywords)
{
    for (Py_ssize_t i = 0; keywords != NULL && i < PyTuple_GET_SIZE(keywords); ++i) {
        if (!PyUnicode_CheckExact(PyTuple_GET_ITEM(keywords, i)))
            return false;
    }
    return true;
}

gts_py_site *gts_py_add_site(gts_py_dispatcher *self, Py_ssize_t given, PyObject *keywords, gts_py_site *scratch)
{
    *scratch = (gts_py_site){.call = {keywords, given}};
    if (GTS_UNLIKELY(check(self, scratch) != 0))
        return NULL;
    if (!gts_py_is_plain(keywords))
        return scratch;
    gts_py_site *const site = &self->site[self->next_site];
    self->next_site = (self->next_site + 1) % GTS_PY_SITES;
    PyObject *const old = site->call.keywords;
    *site = *scratch;
    Py_XINCREF(keywords);
    Py_XDECREF(old);
    return site;
}

/* ---- Recognising ----------------------------------------------------------------------------------------------- */

/* Whether the program knows the objects of all leaves. */
static bool knows_all(const gts_py_program *self)
{
    const gts_program *const program = self->program;
    const uint32_t count = program->stub->leaf_count;
    for (uint32_t i = 0; i < count; ++i) {
        if (gts_known_object(program, i) == NULL)
            return false;
    }
    return self->first_connectivity == count || gts_known_object(program, count) != NULL;
}

/* The number of the only leaf of a parameter, or -1. */
static int find_leaf(const gts_stub *stub, uint32_t parameter)
{
    for (uint32_t i = 0; i < stub->leaf_count && parameter < stub->parameter_count; ++i) {
        if (strcmp(stub->leaves[i].path, stub->parameters[parameter]) == 0)
            return (int)i;
    }
    return -1;
}

void gts_py_recognise_site(gts_py_site *site, gts_py_program *program)
{
    const bool is_same = site->program == program;
    site->program = program;
    site->version = 0;
    if (!is_same || site->always_reads || !knows_all(program))
        return;
    const gts_stub *const stub = program->program->stub;
    site->always_reads = stub->collection_count > 0;
    for (uint32_t i = 0; i < site->passed; ++i) {
        const int leaf = find_leaf(stub, site->place[i]);
        site->always_reads |= leaf < 0 || leaf > UINT16_MAX;
        site->leaf[i] = (uint16_t)leaf;
    }
    if (!site->always_reads)
        site->version = program->program->known_version;
}
