/* variables.c - the variables of environments in memory: arrays sorted by name. */
#include "accounts/variables.h"

#include <ctype.h>
#include <openssl/crypto.h>

#include "base/mem.h"

static void variable_destroy(struct variable *variable)
{
    OPENSSL_cleanse((char *)variable->value.ptr, variable->value.len);
    free((char *)variable->value.ptr);
    free(variable->name);
    free(variable);
}

void variables_destroy(struct variables *variables)
{
    if (!variables)
        return;
    for (size_t i = 0; i < variables->count; i++)
        variable_destroy(variables->sorted[i]);
    free(variables->sorted);
    free(variables);
}

bool variable_name_is_valid(struct slice name)
{
    if (!name.len || name.len > VARIABLE_NAME_MAX || name.ptr[0] == '.' ||
        name.ptr[0] == '-')
        return false;
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (c >= 0x80 || !(isalnum(c) || c == '_' || c == '.' || c == '-'))
            return false;
    }
    return true;
}

bool variable_name_is_reserved(struct slice name)
{
    static const char *const names[] = {
        "TRIGGER_API_URL", "TRIGGER_SECRET_KEY",     "TRIGGER_STREAM_URL",
        "TRIGGER_RUN_ID",  "TRIGGER_PREVIEW_BRANCH", "TRIGGER_MACHINE_PRESET"
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (slice_is(name, names[i]))
            return true;
    return false;
}

/* ---- looking up ---- */

/* Returns the index of the name, or where it would be inserted. */
static size_t place_of(const struct variables *variables, struct slice name)
{
    size_t low = 0, high = variables ? variables->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_compare(slice_of(variables->sorted[middle]->name), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct variables *variables, size_t place, struct slice name)
{
    return variables && place < variables->count &&
           slice_is(name, variables->sorted[place]->name);
}

static const struct variable *find(const struct variables *variables, struct slice name)
{
    if (!name.len)
        return NULL;
    size_t place = place_of(variables, name);
    return is_at(variables, place, name) ? variables->sorted[place] : NULL;
}

const struct variable *variables_own(const struct account *account, struct slice name)
{
    return find(account->variables, name);
}

static const struct variables *of_parent(const struct account *account)
{
    return account->parent ? account->parent->variables : NULL;
}

const struct variable *variables_find(const struct account *account, struct slice name)
{
    const struct variable *own = variables_own(account, name);
    return own ? own : find(of_parent(account), name);
}

static const struct variable *at(const struct variables *variables, size_t place)
{
    return variables && place < variables->count ? variables->sorted[place] : NULL;
}

const struct variable *variables_next(const struct account *account,
                                      struct variable_walk *walk)
{
    const struct variable *own = at(account->variables, walk->own);
    const struct variable *parents = at(of_parent(account), walk->parents);
    int order = own && parents ? strcmp(own->name, parents->name) : own ? -1 : 1;
    walk->own += own && order <= 0;
    walk->parents += parents && order >= 0;
    return order <= 0 ? own : parents;
}

/* ---- setting ---- */

static struct variable *make(struct slice name, struct slice value, bool is_secret,
                             uint32_t version)
{
    struct variable *variable = mem_new(struct variable);
    variable->name = mem_text(name);
    variable->value = (struct slice){ mem_text(value), value.len };
    variable->is_secret = is_secret;
    variable->version = version;
    return variable;
}

static size_t bytes_of(const struct variable *variable)
{
    return strlen(variable->name) + variable->value.len;
}

void variables_put(struct account *account, struct slice name, struct slice value,
                   bool is_secret, uint32_t version)
{
    if (!account->variables)
        account->variables = mem_new(struct variables);
    struct variables *variables = account->variables;
    size_t place = place_of(variables, name);
    struct variable **sorted = variables->sorted;

    if (is_at(variables, place, name)) {
        variables->bytes -= bytes_of(sorted[place]);
        variable_destroy(sorted[place]);
    } else {
        size_t size = (variables->count + 1) * sizeof(*sorted);
        variables->sorted = sorted = mem_resize(sorted, size);
        memmove(sorted + place + 1, sorted + place,
                (variables->count - place) * sizeof(*sorted));
        variables->count++;
    }
    sorted[place] = make(name, value, is_secret, version);
    variables->bytes += bytes_of(sorted[place]);
}

void variables_remove(struct account *account, struct slice name)
{
    struct variables *variables = account->variables;
    size_t place = place_of(variables, name);
    if (!is_at(variables, place, name))
        return;
    struct variable **sorted = variables->sorted;
    variables->bytes -= bytes_of(sorted[place]);
    variable_destroy(sorted[place]);
    variables->count--;
    memmove(sorted + place, sorted + place + 1,
            (variables->count - place) * sizeof(*sorted));
}

void variables_clear(struct account *account)
{
    variables_destroy(account->variables);
    account->variables = NULL;
}

void variables_renew(struct account *account, struct slice name, uint32_t version)
{
    struct variables *variables = account->variables;
    size_t place = place_of(variables, name);
    if (is_at(variables, place, name))
        variables->sorted[place]->version = version;
}
