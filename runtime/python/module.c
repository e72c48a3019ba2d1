/* The extension module gtstub._host. */
#include "python/dispatch/overloads.h"
#include "python/step/step.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static PyObject *load(PyObject *Py_UNUSED(module), PyObject *args, PyObject *keywords)
{
    static char *names[] = {"stub_path", "library_path", "verified", NULL};
    PyObject *stub_path = NULL;
    PyObject *library_path = NULL;
    PyObject *verified = NULL;
    gts_file files[2];
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O&O&|O!:load", names, PyUnicode_FSConverter, &stub_path,
                                     PyUnicode_FSConverter, &library_path, &PyTuple_Type, &verified) ||
        (verified != NULL && !PyArg_ParseTuple(verified, "(KKLL)(KKLL):load", &files[0].device, &files[0].inode,
                                               &files[0].bytes, &files[0].modified, &files[1].device, &files[1].inode,
                                               &files[1].bytes, &files[1].modified))) {
        Py_XDECREF(library_path);
        Py_XDECREF(stub_path);
        return NULL;
    }
    gts_program *program = NULL;
    const char *const stub = PyBytes_AS_STRING(stub_path);
    const char *const library = PyBytes_AS_STRING(library_path);
    const int status = GTS_PY_WITHOUT_GIL(verified == NULL ? gts_load(stub, library, &program)
                                                           : gts_load_verified(stub, library, files, &program));
    PyObject *const made = status == 0 ? gts_py_program_new(program) : gts_py_answer(-1);
    if (made != NULL)
        ((gts_py_program *)made)->path = PyUnicode_DecodeFSDefault(stub);
    Py_DECREF(stub_path);
    Py_DECREF(library_path);
    return made;
}

static PyObject *trust_directory(PyObject *Py_UNUSED(module), PyObject *args)
{
    int directory;
    const char *path;
    bool is_exposed;
    return PyArg_ParseTuple(args, "iy:trust_directory", &directory, &path)
               ? gts_py_answer(gts_trust_directory(directory, path, &is_exposed))
               : NULL;
}

static PyObject *trust_file(PyObject *Py_UNUSED(module), PyObject *args)
{
    int file;
    const char *path;
    return PyArg_ParseTuple(args, "iy:trust_file", &file, &path) ? gts_py_answer(gts_trust_file(file, path)) : NULL;
}

static PyObject *trusts_group(PyObject *Py_UNUSED(module), PyObject *group)
{
    const unsigned long number = PyLong_AsUnsignedLong(group);
    if (PyErr_Occurred())
        return NULL;
    return PyBool_FromLong(gts_trusts_group((unsigned int)number));
}

static void fail(void)
{
    fflush(NULL);
    _exit(1);
}

static PyObject *fail_at_exit(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused))
{
    return atexit(fail) != 0 ? PyErr_NoMemory() : Py_NewRef(Py_None);
}

static PyMethodDef FUNCTIONS[] = {
    {"load", (PyCFunction)(void (*)(void))load, METH_VARARGS | METH_KEYWORDS,
     "load(stub_path, library_path, verified=...)\n--\n\nLoads a call stub and the SDFG library that it calls; returns "
     "a Program. 'verified' holds (st_dev, st_ino, st_size, st_mtime_ns) of both files; other files are refused."},
    {"trust_directory", trust_directory, METH_VARARGS,
     "trust_directory(directory, path, /)\n--\n\nRaises RuntimeError for a directory of libraries that others could "
     "have written: a descriptor, and its path as bytes."},
    {"trust_file", trust_file, METH_VARARGS, "trust_file(file, path, /)\n--\n\nThe same for a file alone."},
    {"trusts_group", trusts_group, METH_O, "trusts_group(group, /)\n--\n\nWhether what a group can write is trusted."},
    {"begin_profile", gts_py_begin_profile, METH_NOARGS,
     "begin_profile()\n--\n\nBegins to time all calls of programs; returns the profile for end_profile()."},
    {"end_profile", gts_py_end_profile, METH_O,
     "end_profile(profile, /)\n--\n\nWaits for the calls that are running, and returns the report of the profile as "
     "JSON."},
    {"pool", gts_py_pool, METH_NOARGS,
     "pool()\n--\n\nGives the memory that SDFGs have freed, and that the process keeps for their next arrays, back to "
     "the system.\nReturns how many bytes were kept."},
    {"begin_checks", gts_py_begin_checks, METH_O,
     "begin_checks(text, /)\n--\n\nBegins to check all calls of programs; returns the checks for end_checks()."},
    {"end_checks", gts_py_end_checks, METH_O,
     "end_checks(checks, /)\n--\n\nWaits for the calls that are running, and ends the checks."},
    {"add_span", gts_py_add_span, METH_VARARGS,
     "add_span(kind, name, track, begin, end, /)\n--\n\nAdds a time, in ns of CLOCK_MONOTONIC, to the timeline of this "
     "process, if it has one: on the line 'track', or on that of this thread for None."},
    {"get_stream", gts_py_get_current_stream, METH_NOARGS,
     "get_stream()\n--\n\nReturns the stream of all programs that have none of their own; None is the default stream."},
    {"set_stream", gts_py_set_current_stream, METH_O,
     "set_stream(stream, /)\n--\n\nSets the stream of all programs that have none of their own."},
    {"check_stream", gts_py_check_stream, METH_O,
     "check_stream(stream, /)\n--\n\nRaises what `Program.stream` raises for an object that is no stream."},
    {"bind", (PyCFunction)(void (*)(void))gts_py_bind, METH_VARARGS | METH_KEYWORDS,
     "bind(callable, /, *args, **kwargs)\n--\n\nReturns the bound call of the program that callable(*args, **kwargs) "
     "would call. It does not run."},
    {"begin_capture", gts_py_begin_capture, METH_VARARGS,
     "begin_capture(look=None, /)\n--\n\nBegins to capture the calls of programs in this thread; returns the capture. "
     "Before each call, look(number) gets the number of the calls that have ended."},
    {"end_capture", gts_py_end_capture, METH_O,
     "end_capture(capture, /)\n--\n\nEnds to capture; returns the bound calls."},
    {"binding", gts_py_binding, METH_NOARGS,
     "binding()\n--\n\nWhat this thread does with calls: 'bind', 'capture', or None."},
    {"calls_elsewhere", gts_py_calls_elsewhere, METH_NOARGS,
     "calls_elsewhere()\n--\n\nCalls of programs until now by threads that did not capture while another one did."},
    {"swap", (PyCFunction)(void (*)(void))gts_py_swap, METH_FASTCALL,
     "swap(steps, /, *arrays)\n--\n\nExchanges the arrays of each pair in several steps, as Step.swap() does in one."},
    {"hand_over", gts_py_hand_over, METH_VARARGS,
     "hand_over(step, name, /)\n--\n\nHands a step over to C and Fortran, which find it by the name."},
    {"take_back", gts_py_take_back, METH_O,
     "take_back(name, /)\n--\n\nTakes a step back, which C and Fortran cannot use any more."},
    {"end_steps", gts_py_end_steps, METH_NOARGS,
     "end_steps()\n--\n\nAt exit: takes all steps back for ever, and waits for those that are running."},
    {"fail_at_exit", fail_at_exit, METH_NOARGS,
     "fail_at_exit()\n--\n\nMakes this process exit with status 1, after everything that it does at exit."},
    {NULL, NULL, 0, NULL},
};

/*
 * The GIL protects what programs, call sites and steps know of their arguments. A free-threaded CPython enables it when
 * it imports this module, which says so in its slots, unless its user has said that it stays disabled.
 */
static int check_gil(void)
{
#ifdef Py_GIL_DISABLED
    PyObject *const is_enabled = PySys_GetObject("_is_gil_enabled"); /* borrowed */
    PyObject *const answer = is_enabled == NULL ? NULL : PyObject_CallNoArgs(is_enabled);
    const int status = answer == NULL ? -1 : PyObject_IsTrue(answer);
    Py_XDECREF(answer);
    if (status <= 0 && !PyErr_Occurred())
        return gts_py_fail(PyExc_ImportError,
                           "This process has disabled the GIL, which gtstub needs. Start Python without '-X gil=0' and "
                           "without PYTHON_GIL=0: it then enables the GIL when gtstub is imported.");
    return status > 0 ? 0 : -1;
#else
    return 0;
#endif
}

/* The state has the types and the names. A second import of the module uses them, as do the objects of the first one. */
static bool is_imported;

static int add_types(PyObject *module)
{
#define X(text)                                                                                                        \
    if (PyModule_AddType(module, gts_py.text##_type) != 0)                                                             \
        return -1;
    GTS_PY_TYPES(X)
#undef X
    return 0;
}

/* When the interpreter ends: another one may begin in this process. */
static void forget_state(void)
{
    gts_py = (gts_py_state){0};
    is_imported = false;
}

static int execute(PyObject *module)
{
    if (check_gil() != 0)
        return -1;
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return gts_py_fail(PyExc_ImportError,
                           "This is a second interpreter of the process. gtstub can be used in the main one alone.");
    if (is_imported)
        return add_types(module);
    forget_state();
#define X(text)                                                                                                        \
    gts_py.name.text = PyUnicode_InternFromString(#text);                                                              \
    if (gts_py.name.text == NULL)                                                                                      \
        return -1;
    GTS_PY_NAMES(X)
#undef X
#define X(text)                                                                                                        \
    gts_py.text##_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &gts_py_##text##_spec, NULL);                \
    if (gts_py.text##_type == NULL)                                                                                    \
        return -1;
    GTS_PY_TYPES(X)
#undef X
    gts_py_add_watcher();
    is_imported = Py_AtExit(forget_state) == 0;
    return add_types(module);
}

static PyModuleDef_Slot SLOTS[] = {
    {Py_mod_exec, execute},
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_USED},
#endif
    {0, NULL},
};

static PyModuleDef MODULE = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gtstub._host",
    .m_doc = "Loads call stubs and calls programs through them.",
    .m_methods = FUNCTIONS,
    .m_slots = SLOTS,
};

PyMODINIT_FUNC PyInit__host(void);

PyMODINIT_FUNC PyInit__host(void)
{
    return PyModuleDef_Init(&MODULE);
}
