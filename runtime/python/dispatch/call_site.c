/* Call sites: the keywords that one place in the source passes are checked once. */
#include "python/dispatch/dispatcher.h"

/* Checks which parameters a call passes, and finds the parameter of each argument. */
static int check(const gts_py_dispatcher *self, gts_py_site *site)
{
    int32_t source[GTS_PY_MAX_PARAMETERS + 1];
    const uint32_t count = (uint32_t)PyTuple_GET_SIZE(self->takes.parameters);
    if (gts_py_match(&self->takes, site->call.given, site->call.keywords, source) != 0)
        return -1;
    for (uint32_t i = 0; i <= count; ++i) {
        if (source[i] < 0)
            continue;
        site->place[source[i]] = (uint8_t)i;
        ++site->passed;
    }
    site->selects = source[count] >= 0;
    for (uint32_t i = 0; i < self->static_count; ++i)
        site->selects = site->selects || source[self->statics[i].parameter] >= 0;
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
