/* Bound calls: their memory, binding, and starting them from C and Fortran. */
#define _DEFAULT_SOURCE
#include "program/bound.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/new.h"
#include "base/refuse.h"
#include "base/strided.h"
#include "base/table_copy.h"
#include "program/private.h"

/* ---- Binding --------------------------------------------------------------------------------------------------- */

void gts_binding_begin(gts_binding *binding)
{
    binding->outer = gts_binding_here;
    binding->generation = gts_forks;
    gts_binding_here = binding;
    gts_add_attention(1);
}

void gts_binding_end(gts_binding *binding)
{
    gts_binding_here = binding->outer;
    if (binding->generation == gts_forks) /* a fork sets gts_attention to 0 */
        gts_add_attention(-1);
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

GTS_LOCK(lock) /* of the lists of bound calls of all programs */

/* Makes a bound call without slots. */
static gts_bound_call *new_call(gts_program *program, const void *args)
{
    const gts_stub *const stub = program->stub;
    const size_t own = gts_in_cache_lines(sizeof(gts_bound_call));
    gts_bound_call *const call = gts_new_lines(own + stub->slots_size);
    _Static_assert(offsetof(gts_bound_call, stub) < GTS_CACHE_LINE,
                   "a start reads one line of the call, and its slots");
    call->program = program;
    call->references = 1;
    call->stub = stub;
    call->run = stub->run;
    call->slots = (char *)call + own;
    call->args = gts_new(1, stub->args_size);
    if (args != NULL)
        memcpy(call->args, args, stub->args_size);
    pthread_mutex_lock(&lock);
    call->next = program->runtime->bound;
    program->runtime->bound = call;
    pthread_mutex_unlock(&lock);
    return call;
}

static void release_tables(gts_bound_call *call)
{
    for (uint32_t i = 0; call->tables != NULL && i < call->stub->leaf_count; ++i)
        gts_table_copy_release(call->tables[i]);
    free(call->tables);
    call->tables = NULL;
}

/* Keeps the copies of tables that the slots of a call contain. */
static void keep_tables(gts_bound_call *call, const gts_program *program)
{
    gts_table_copy **tables = NULL;
    for (uint32_t i = 0; i < call->stub->leaf_count; ++i) {
        gts_table_copy *const copy = call->stub->leaves[i].kind == GTS_CONNECTIVITY
                                         ? gts_table_of(&program->leaf[i])->copy
                                         : NULL;
        if (copy == NULL)
            continue;
        if (tables == NULL)
            tables = gts_new(call->stub->leaf_count, sizeof *tables);
        tables[i] = gts_table_copy_keep(copy);
    }
    release_tables(call);
    call->tables = tables;
}

/* ---- Index bases ----------------------------------------------------------------------------------------------- */

/* Sets the index base of a table, which the caller restores: the host has set another one since the call was bound. */
static int set_base(gts_program *program, uint32_t leaf, int64_t base)
{
    if (gts_enter_open(program) != 0)
        return -1;
    program->leaf[leaf].index_base = base;
    gts_forget_arrays(program);
    gts_leave(program);
    return 0;
}

/* Calls `act` while the tables from a leaf on have the index bases with which a call was bound: the others are copied. */
static int with_bases_from(const gts_bound_call *call, uint32_t leaf, int (*act)(void *), void *context)
{
    const gts_stub *const stub = call->stub;
    gts_program *const program = call->program;
    for (; leaf < stub->leaf_count; ++leaf) {
        const bool was_copied = call->tables != NULL && call->tables[leaf] != NULL; /* to base 0 */
        const int64_t now = program->leaf[leaf].index_base;
        if ((now == 1) == was_copied || gts_is_empty(gts_array_in(call->args, &stub->leaves[leaf])))
            continue;
        if (set_base(program, leaf, was_copied) != 0)
            return -1;
        const int status = with_bases_from(call, leaf + 1, act, context);
        return set_base(program, leaf, now) == 0 ? status : -1;
    }
    return act(context);
}

static int with_bases(const gts_bound_call *call, int (*act)(void *), void *context)
{
    return with_bases_from(call, gts_first_table(call->stub), act, context);
}

/* ---- Taking arguments ------------------------------------------------------------------------------------------ */

/* What the arguments of a host with its own objects have for a callback, which each start gets as an object. */
static void call_back(void)
{
}

gts_bound_call *gts_bound_take(gts_program *program)
{
    gts_bound_call *const call = new_call(program, NULL);
    for (uint32_t i = 0; i < call->stub->leaf_count; ++i) {
        const gts_contract *const contract = &call->stub->leaves[i];
        char *const member = (char *)call->args + contract->member;
        if (gts_is_array(contract->kind))
            *(gts_array *)member = *gts_array_of(program, i);
        else if (contract->kind == GTS_CALLBACK)
            memcpy(member, &(const gts_function){call_back}, sizeof(gts_function));
        else if (contract->kind != GTS_STATIC)
            memcpy(member, (const char *)program->slots + contract->slot, gts_dtype_size(contract->dtype));
        /* Each start converts these anew, because their values may change. */
        call->needs_host |= contract->kind == GTS_ZERO_DIM_FIELD || contract->kind == GTS_CALLBACK;
        if (contract->kind == GTS_ZERO_DIM_FIELD && call->fields == NULL)
            call->fields = gts_new(call->stub->leaf_count, sizeof *call->fields);
    }
    memcpy(call->slots, program->slots, call->stub->slots_size);
    return call;
}

void gts_bound_close(gts_program *program)
{
    pthread_mutex_lock(&lock);
    for (gts_bound_call *call = program->runtime->bound; call != NULL; call = call->next)
        call->program = NULL;
    pthread_mutex_unlock(&lock);
}

gts_bound_call *gts_bound_keep(gts_bound_call *call)
{
    ++call->references;
    return call;
}

void gts_unbind(gts_bound_call **call)
{
    gts_bound_call *const self = *call;
    *call = NULL;
    if (self == NULL || --self->references > 0)
        return;
    pthread_mutex_lock(&lock);
    if (self->program != NULL) {
        gts_bound_call **link = &self->program->runtime->bound;
        while (*link != self)
            link = &(*link)->next;
        *link = self->next;
    }
    pthread_mutex_unlock(&lock);
    release_tables(self);
    free(self->held);
    free(self->fields);
    free(self->args);
    free(self);
}

/* ---- C and Fortran --------------------------------------------------------------------------------------------- */

typedef struct c_binding {
    gts_binding binding; /* the first member */
    gts_bound_call *call;
} c_binding;

static int take_slots(gts_binding *binding, gts_program *program)
{
    gts_bound_call *const call = ((c_binding *)binding)->call;
    keep_tables(call, program);
    memcpy(call->slots, program->slots, call->stub->slots_size);
    return 0;
}

/* Checks the arguments, and gives them to the bound call. */
static int bind_args(gts_bound_call *call, const void *args)
{
    c_binding binding = {.binding.bind = take_slots, .call = call};
    gts_binding_begin(&binding.binding);
    const int status = call->stub->call(call->program, args);
    gts_binding_end(&binding.binding);
    return status;
}

/* Replaces the names of dimensions, which the host may free, by those of the contracts. A wrong one stays, and is refused. */
static void take_names(const gts_stub *stub, void *args)
{
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        const gts_contract *const contract = &stub->leaves[i];
        gts_array *const array = gts_array_in(args, contract);
        if (!gts_is_array(contract->kind) || array->rank != contract->rank)
            continue;
        for (int32_t axis = 0; axis < contract->rank; ++axis) {
            const char *const expected = contract->axes[axis].dim;
            const char *const name = array->dims[axis];
            if (name != NULL && name != expected && strcmp(name, expected) == 0)
                array->dims[axis] = expected;
        }
    }
}

int gts_bind(gts_program *program, const void *args, gts_bound_call **call)
{
    *call = NULL;
    if (program == NULL)
        return gts_enter_open(program);
    gts_bound_call *self = new_call(program, args);
    self->run = program->stub->start;
    take_names(program->stub, self->args);
    if (bind_args(self, args == NULL ? NULL : self->args) != 0) {
        gts_unbind(&self);
        return -1;
    }
    *call = self;
    return 0;
}

gts_program *gts_bound_program(const gts_bound_call *call)
{
    return call == NULL ? NULL : call->program;
}

int gts_bound_refuse_closed(const gts_bound_call *call)
{
    if (call == NULL)
        return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                             "The call cannot be used: it was unbound, or never bound.");
    return gts_error_set(&gts_own_error, GTS_RUNTIME_ERROR,
                         "The bound call of program '%s' cannot be used: the program was closed.", call->stub->name);
}

/* When debugging: refuses an array that was freed, as far as the allocator has given its memory back. */
static GTS_COLD int check_memory(const gts_bound_call *call)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (uint32_t i = 0; i < call->stub->leaf_count; ++i) {
        const gts_contract *const contract = &call->stub->leaves[i];
        gts_range memory;
        if (!gts_is_array(contract->kind) || contract->device != GTS_CPU ||
            !gts_find_range(gts_array_in(call->args, contract), &memory) || memory.size == 0)
            continue;
        const uintptr_t begin = memory.low / page * page;
        if (msync((void *)begin, memory.high - begin, MS_ASYNC) != 0) /* some of these pages are not mapped */
            return GTS_REFUSE(call->program, contract, GTS_VALUE_ERROR,
                              "was freed after the call was bound: its memory is not there any more.");
    }
    return 0;
}

/* Binds a call again that has seen a changed table. Its program may compare others of the elements, and not see it. */
static int bind_again(void *context)
{
    gts_bound_call *const call = context;
    const gts_stub *const stub = call->stub;
    if (gts_enter_open(call->program) != 0)
        return -1;
    for (uint32_t i = gts_first_table(stub); i < stub->leaf_count; ++i) {
        if (memcmp(&gts_samples_of(stub, i, call->slots)->of, &gts_samples_of(stub, i, call->program->slots)->of,
                   sizeof(gts_table_use)) != 0)
            gts_forget_arrays(call->program);
    }
    gts_leave(call->program);
    return bind_args(call, call->args);
}

static int call_program(void *context)
{
    const gts_bound_call *const call = context;
    return call->stub->call(call->program, call->args);
}

static GTS_COLD int start_slowly(gts_bound_call *call, bool has_new_table)
{
    if (gts_bound_program(call) == NULL)
        return gts_bound_refuse_closed(call);
    if (call->program->debug && check_memory(call) != 0)
        return -1;
    if (has_new_table && with_bases(call, bind_again, call) != 0)
        return -1;
    return with_bases(call, call_program, call);
}

int gts_start(gts_bound_call *call)
{
    const int status = GTS_LIKELY(call != NULL) ? gts_start_known(call) : 1;
    return GTS_LIKELY(status <= 0) ? status : start_slowly(call, status == GTS_TABLE_CHANGED);
}

/* ---- Changing -------------------------------------------------------------------------------------------------- */

static int enter_program(void *program)
{
    return gts_enter_open(program);
}

/* Not in the child of a fork, where no call is running. */
bool gts_bound_enter(gts_program *program, gts_waiting wait)
{
    return program != NULL && (gts_try_enter(program) ||
                               (wait == NULL ? enter_program(program) : wait(NULL, enter_program, program)) == 0);
}

void gts_find_memory(const gts_array *array, uintptr_t *low, uintptr_t *high)
{
    gts_range memory;
    if (!gts_find_range(array, &memory))
        memory = (gts_range){.high = UINTPTR_MAX};
    *low = memory.low;
    *high = memory.high;
}

void gts_bound_replace(gts_bound_call *call, gts_bound_call *by, gts_waiting wait)
{
    gts_table_copy **const tables = call->tables;
    const bool is_entered = gts_bound_enter(call->program, wait);
    memcpy(call->slots, by->slots, call->stub->slots_size);
    memcpy(call->args, by->args, call->stub->args_size);
    call->tables = by->tables;
    by->tables = tables;
    for (size_t i = 0; call->held != NULL && i < call->held->count; ++i) {
        gts_held_array *const each = &call->held->array[i];
        if (each->by == NULL)
            continue;
        each->array->data = each->to; /* as in `args`, but not yet in `fields` */
        each->array->readonly = each->by->array.readonly;
        gts_find_memory(each->array, &each->low, &each->high);
    }
    if (is_entered)
        gts_leave(call->program);
}

int64_t gts_bound_find(const gts_stub *stub, const char *argument)
{
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        const gts_contract *const contract = &stub->leaves[i];
        if (*contract->name == *argument && /* a path begins with the same character */
            (strcmp(contract->path, argument) == 0 || strcmp(contract->name, argument) == 0))
            return i;
    }
    return -1;
}

int gts_bound_check_scalar(gts_program *program, const gts_contract *contract)
{
    if (contract->kind == GTS_SCALAR || (contract->kind == GTS_ZERO_DIM_FIELD && program->host == NULL))
        return 0;
    if (contract->kind == GTS_STATIC)
        return GTS_REFUSE(program, contract, GTS_VALUE_ERROR, "was compiled in, and cannot be changed.");
    return GTS_REFUSE(program, contract, GTS_TYPE_ERROR, "is not a scalar: bind the call again to change it.");
}

static int change_scalar(gts_program *program, void *args, const gts_scalar *scalar)
{
    const int64_t leaf = gts_bound_find(program->stub, scalar->argument);
    if (leaf < 0)
        return 0;
    const gts_contract *const contract = &program->stub->leaves[leaf];
    if (gts_bound_check_scalar(program, contract) != 0)
        return -1;
    const gts_dtype dtype = contract->dtype;
    const bool is_unsigned = dtype >= GTS_INT8 && dtype <= GTS_UINT64 && (scalar->dtype | 1U) == dtype;
    if (scalar->dtype != dtype && !is_unsigned) /* Fortran has no unsigned integers, and passes signed ones */
        return GTS_REFUSE(program, contract, GTS_TYPE_ERROR, "must have dtype '%s', not '%s'.", gts_dtype_name(dtype),
                          gts_dtype_name(scalar->dtype));
    void *const member = (char *)args + contract->member;
    if (contract->dtype == GTS_BOOL) /* of Fortran, whose compilers may set all bits */
        *(bool *)member = *(const unsigned char *)scalar->value != 0;
    else
        memcpy(member, scalar->value, gts_dtype_size(contract->dtype));
    return 1;
}

int gts_bound_change_scalars(gts_program *program, void *args, const void *what)
{
    const gts_scalars *const all = what;
    int changed = 0;
    for (size_t i = 0; i < all->count; ++i) {
        const int status = change_scalar(program, args, &all->scalars[i]);
        if (status < 0)
            return -1;
        changed |= status;
    }
    return changed;
}

static int bind_own(void *context)
{
    gts_bound_call *const call = context;
    return bind_args(call, call->args);
}

int gts_bound_change(const gts_bound_call *call, gts_bound_changer change, const void *what, gts_bound_call **changed)
{
    *changed = NULL;
    if (gts_bound_program(call) == NULL)
        return gts_bound_refuse_closed(call);
    gts_bound_call *new = new_call(call->program, call->args);
    int status = change(call->program, new->args, what);
    take_names(call->stub, new->args);
    if (status > 0)
        status = with_bases(call, bind_own, new) == 0 ? 1 : -1;
    if (status > 0)
        *changed = new;
    else
        gts_unbind(&new);
    return status;
}

int gts_set_scalars(gts_bound_call *call, const gts_scalar *scalars, size_t count)
{
    gts_program *const program = gts_bound_program(call);
    if (program == NULL)
        return gts_bound_refuse_closed(call);
    for (size_t i = 0; i < count; ++i) {
        if (gts_bound_find(call->stub, scalars[i].argument) < 0)
            return gts_error_set(&program->error, GTS_TYPE_ERROR, "Program '%s' has no argument '%s'.",
                                 call->stub->name, scalars[i].argument);
    }
    if (atomic_exchange(&call->is_changing, true))
        return GTS_REFUSE_PROGRAM(program, GTS_RUNTIME_ERROR,
                                  "has a bound call that is being changed, in another thread or in a step.");
    gts_bound_call *changed;
    const int status = gts_bound_change(call, gts_bound_change_scalars, &(const gts_scalars){scalars, count}, &changed);
    if (status > 0)
        gts_bound_replace(call, changed, NULL);
    call->is_changing = false;
    gts_unbind(&changed);
    return status < 0 ? -1 : 0;
}

int gts_set_scalar(gts_bound_call *call, const char *argument, gts_dtype dtype, const void *value)
{
    return gts_set_scalars(call, &(const gts_scalar){argument, dtype, value}, 1);
}

/* ---- Arrays that may be swapped --------------------------------------------------------------------------------- */

int gts_bound_hold(gts_bound_call *call)
{
    if (call->held != NULL)
        return 0;
    if (gts_bound_program(call) == NULL)
        return gts_bound_refuse_closed(call);
    const gts_stub *const stub = call->stub;
    gts_held *const held = gts_new(1, sizeof *held + stub->leaf_count * sizeof *held->array);
    for (uint32_t i = 0; i < stub->leaf_count; ++i) {
        const gts_contract *const contract = &stub->leaves[i];
        const bool is_array = gts_is_array(contract->kind);
        if (!is_array && (call->fields == NULL || call->fields[i].data == NULL))
            continue;
        gts_held_array *const each = &held->array[held->count++];
        *each = (gts_held_array){
            .array = is_array ? gts_array_in(call->args, contract) : &call->fields[i],
            .index = i,
            .is_patched = !is_array || (contract->kind == GTS_FIELD && contract->device == GTS_CPU),
            .written = contract->written,
            .slot = is_array ? contract->slot : GTS_NO_SLOT, /* the slot has the value, which each start reads */
        };
        gts_find_memory(each->array, &each->low, &each->high);
    }
    call->held = held;
    return 0;
}
