/* envvar_body.c - reads environment variables from JSON bodies.
 *
 * Values are secrets: they are decoded into one buffer, which is wiped. */
#include "api/envvars/envvar_body.h"

#include "accounts/variables.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/vault/secret.h"

static bool complain(struct complaint *wrong, const char *path, const char *message)
{
    *wrong = (struct complaint){ path, message };
    return false;
}

void wishes_finish(struct envvar_wishes *wishes)
{
    secret_forget_buf(&wishes->text);
    free(wishes->own);
    free(wishes->parents);
    *wishes = (struct envvar_wishes){ 0 };
}

/* Decoded text is never longer than its JSON, so the buffer never moves. */
static void envvar_wishes_begin(struct envvar_wishes *wishes, struct slice body,
                                size_t more)
{
    *wishes = (struct envvar_wishes){ .is_secret = -1 };
    buf_reserve(&wishes->text, body.len + more);
}

static bool read_text(struct envvar_wishes *wishes, struct slice value, struct slice *text)
{
    size_t start = wishes->text.len;
    if (!scan_string(value, &wishes->text))
        return false;
    *text = (struct slice){ wishes->text.ptr + start, wishes->text.len - start };
    return true;
}

/* Reads a flag; leaves *flag unchanged if it is absent. Returns false if it is not a
 * boolean. */
static bool read_flag(struct slice body, const char *name, int *flag)
{
    enum scan_type type = scan_type(scan_member(body, name));
    if (type == SCAN_TRUE || type == SCAN_FALSE)
        *flag = type == SCAN_TRUE;
    return type == SCAN_NONE || type == SCAN_TRUE || type == SCAN_FALSE;
}

static struct wish *one_wish(struct envvar_wishes *wishes)
{
    wishes->own = mem_new(struct wish);
    wishes->own_count = 1;
    return wishes->own;
}

bool wishes_read_one(struct slice body, struct slice name, struct envvar_wishes *wishes,
                     struct complaint *wrong)
{
    (void)name;
    envvar_wishes_begin(wishes, body, 0);
    struct wish *wish = one_wish(wishes);
    wishes->override = true;
    if (!read_text(wishes, scan_member(body, "name"), &wish->name))
        return complain(wrong, "name", "Expected string");
    if (!read_text(wishes, scan_member(body, "value"), &wish->value))
        return complain(wrong, "value", "Expected string");
    if (!read_flag(body, "isSecret", &wishes->is_secret))
        return complain(wrong, "isSecret", "Expected boolean");
    return true;
}

bool wishes_read_value(struct slice body, struct slice name, struct envvar_wishes *wishes,
                       struct complaint *wrong)
{
    envvar_wishes_begin(wishes, body, name.len);
    struct wish *wish = one_wish(wishes);
    wishes->override = true;
    buf_add(&wishes->text, name);
    wish->name = buf_slice(&wishes->text);
    if (!read_text(wishes, scan_member(body, "value"), &wish->value))
        return complain(wrong, "value", "Expected string");
    return true;
}

static bool count_members(struct slice object, size_t *count)
{
    struct scan_members members = scan_members(object);
    struct slice key, value;
    *count = 0;
    while (scan_next_member(&members, &key, &value))
        if (++*count > VARIABLES_MAX)
            return false;
    return true;
}

static bool read_map(struct envvar_wishes *wishes, struct slice map, const char *path,
                     struct wish **list, size_t *list_count, struct complaint *wrong)
{
    size_t count;
    struct slice key, value;
    if (scan_type(map) != SCAN_OBJECT)
        return complain(wrong, path, "Expected object");
    if (!count_members(map, &count))
        return complain(wrong, path, "Expected at most 1000 variables");
    if (scan_has_duplicate(map))
        return complain(wrong, path, "Expected each name once");
    struct wish *wish = *list = mem_new_array(struct wish, count);
    struct scan_members members = scan_members(map);
    while (scan_next_member(&members, &key, &value)) {
        struct slice quoted = { key.ptr - 1, key.len + 2 };
        if (!read_text(wishes, value, &wish->value))
            return complain(wrong, path, "Expected strings as values");
        read_text(wishes, quoted, &wish->name);
        wish++;
    }
    *list_count = count;
    return true;
}

/* Returns true if source is absent or valid. It says who set a variable and is not
 * stored. */
static bool is_source(struct slice source)
{
    struct slice type = scan_member(source, "type");
    if (scan_type(source) == SCAN_NONE)
        return true;
    if (scan_type(source) != SCAN_OBJECT)
        return false;
    bool user = scan_equal(type, SLICE("\"user\""));
    bool integration = scan_equal(type, SLICE("\"integration\""));
    const char *who = user ? "userId" : "integration";
    return (user || integration) && scan_type(scan_member(source, who)) == SCAN_STRING;
}

bool wishes_read_many(struct slice body, struct slice name, struct envvar_wishes *wishes,
                      struct complaint *wrong)
{
    (void)name;
    int override = 0;
    struct slice parents = scan_member(body, "parentVariables");
    envvar_wishes_begin(wishes, body, 0);
    if (!read_flag(body, "override", &override))
        return complain(wrong, "override", "Expected boolean");
    if (!read_flag(body, "isSecret", &wishes->is_secret))
        return complain(wrong, "isSecret", "Expected boolean");
    if (!is_source(scan_member(body, "source")))
        return complain(wrong, "source",
                        "Expected {type: \"user\", userId} or {type: "
                        "\"integration\", integration}");
    wishes->override = override;
    if (!read_map(wishes, scan_member(body, "variables"), "variables", &wishes->own,
                  &wishes->own_count, wrong))
        return false;
    return scan_type(parents) == SCAN_NONE ||
           read_map(wishes, parents, "parentVariables", &wishes->parents,
                    &wishes->parent_count, wrong);
}
