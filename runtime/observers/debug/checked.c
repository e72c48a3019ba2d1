/* Selects the programs and the fields that checks apply to. */
#include "observers/debug/checked.h"

#include <math.h>
#include <stdio.h>

#include "base/new.h"

size_t gts_checked_offset;

void gts_checked_join_limits(gts_checked *checked, uint32_t index)
{
    gts_checked_field *const field = &checked->fields[index];
    const bool *const applies = gts_checked_rules(checked, index);
    field->is_checked = false;
    field->limits = GTS_NO_LIMITS;
    for (uint32_t i = 0; i < checked->checks->rule_count; ++i) {
        const gts_limits *const limits = &checked->checks->rules[i].limits;
        if (!applies[i])
            continue;
        field->is_checked = true;
        if (limits->low > field->limits.low)
            field->limits.low = limits->low;
        if (limits->high < field->limits.high)
            field->limits.high = limits->high;
        field->limits.refuses_nan |= limits->refuses_nan;
    }
}

static void select_field(gts_checked *checked, uint32_t index, const gts_contract *contract)
{
    gts_checks *const checks = checked->checks;
    for (uint32_t i = 0; i < checks->rule_count; ++i) {
        gts_rule *const rule = &checks->rules[i];
        gts_checked_rules(checked, index)[i] = rule->fields.pattern == NULL ||
                                               gts_pattern_selects(&rule->fields, contract->path);
    }
    for (uint32_t i = 0; i < checks->trace_count; ++i) {
        if (checks->traces[i].rank == contract->rank)
            gts_pattern_selects(&checks->traces[i].fields, contract->path);
    }
    gts_checked_join_limits(checked, index);
}

/* All patterns are compared, so that each knows whether it has selected a program. */
static bool select_program(gts_checks *checks, const char *name)
{
    bool is_selected = checks->only_count == 0;
    for (uint32_t i = 0; i < checks->only_count; ++i)
        is_selected |= gts_pattern_selects(&checks->only[i], name);
    checks->has_met = true;
    if (is_selected)
        checks->has_selected = true;
    return is_selected;
}

int gts_checked_refuse(gts_program *self, gts_checked *checked, const char *array, const gts_rule *rule,
                       const gts_error *error)
{
    if (!checked->checks->warns) {
        self->error = *error;
        return -1;
    }
    for (const gts_warned *each = checked->warned; each != NULL; each = each->next) {
        if (each->rule == rule && strcmp(each->array, array) == 0)
            return 0;
    }
    fprintf(stderr, "%s\n", error->message);
    gts_warned *const made = gts_new(1, sizeof *made);
    *made = (gts_warned){checked->warned, array, rule};
    checked->warned = made;
    return 0;
}

static void free_checked(gts_checked *checked)
{
    while (checked->warned != NULL) {
        gts_warned *const warned = checked->warned;
        checked->warned = warned->next;
        free(warned);
    }
    free(checked->applies);
    free(checked->copy.bytes);
    free(checked);
}

static gts_checked *find_known(const gts_program *self, const gts_checks *checks)
{
    gts_checked *known = gts_checked_of(self)->checked;
    while (known != NULL && known->checks != checks)
        known = known->next;
    return known;
}

bool gts_checked_may_select(const gts_program *self, const gts_checks *checks)
{
    const gts_checked *const known = find_known(self, checks);
    return known == NULL || known->is_selected;
}

gts_checked *gts_checked_find(gts_program *self, gts_checks *checks)
{
    gts_checked_program *const own = gts_checked_of(self);
    gts_checked *const known = find_known(self, checks);
    if (known != NULL)
        return known;
    const size_t count = self->stub->leaf_count;
    gts_checked *const made = gts_new(1, sizeof *made + count * sizeof *made->fields);
    made->checks = checks;
    made->applies = gts_new(count * checks->rule_count, sizeof *made->applies);
    made->is_selected = select_program(checks, self->stub->name);
    for (uint32_t i = 0; i < count && made->is_selected; ++i) {
        if (gts_checked_is_field(self, i))
            select_field(made, i, &self->stub->leaves[i]);
    }
    made->next = own->checked;
    return own->checked = made;
}

void gts_checked_forget(gts_program *self, const gts_checks *checks)
{
    gts_checked **link = &gts_checked_of(self)->checked;
    while (*link != NULL && (*link)->checks != checks)
        link = &(*link)->next;
    gts_checked *const found = *link;
    if (found == NULL)
        return;
    *link = found->next;
    free_checked(found);
}

void gts_checked_close(gts_program *self)
{
    const gts_checked_program *const own = gts_checked_of(self);
    while (own->checked != NULL)
        gts_checked_forget(self, own->checked->checks);
}
