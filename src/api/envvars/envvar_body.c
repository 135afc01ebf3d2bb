/* envvar_body.c - reads environment variables from JSON bodies.
 *
 * Values are secrets: they are decoded into one buffer, which is wiped. */
#include "api/envvars/envvar_body.h"

#include "accounts/variables.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "base/vault/secret.h"

static bool refuse_at(struct body_error *wrong, const char *path, const char *message)
{
    *wrong = (struct body_error){ path, message };
    return false;
}

void envvar_inputs_finish(struct envvar_inputs *inputs)
{
    secret_forget_buf(&inputs->text);
    free(inputs->own);
    free(inputs->parents);
    *inputs = (struct envvar_inputs){ 0 };
}

/* Decoded text is never longer than its JSON, so the buffer never moves. */
static void envvar_inputs_begin(struct envvar_inputs *inputs, struct slice body,
                                size_t more)
{
    *inputs = (struct envvar_inputs){ .is_secret = -1 };
    buf_reserve(&inputs->text, body.len + more);
}

static bool read_text(struct envvar_inputs *inputs, struct slice value, struct slice *text)
{
    size_t start = inputs->text.len;
    if (!scan_string(value, &inputs->text))
        return false;
    *text = (struct slice){ inputs->text.ptr + start, inputs->text.len - start };
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

static struct envvar_input *one_input(struct envvar_inputs *inputs)
{
    inputs->own = mem_new(struct envvar_input);
    inputs->own_count = 1;
    return inputs->own;
}

bool envvar_inputs_read_one(struct slice body, struct slice name,
                            struct envvar_inputs *inputs, struct body_error *wrong)
{
    (void)name;
    envvar_inputs_begin(inputs, body, 0);
    struct envvar_input *input = one_input(inputs);
    inputs->override = true;
    if (!read_text(inputs, scan_member(body, "name"), &input->name))
        return refuse_at(wrong, "name", "Expected string");
    if (!read_text(inputs, scan_member(body, "value"), &input->value))
        return refuse_at(wrong, "value", "Expected string");
    if (!read_flag(body, "isSecret", &inputs->is_secret))
        return refuse_at(wrong, "isSecret", "Expected boolean");
    return true;
}

bool envvar_inputs_read_value(struct slice body, struct slice name,
                              struct envvar_inputs *inputs, struct body_error *wrong)
{
    envvar_inputs_begin(inputs, body, name.len);
    struct envvar_input *input = one_input(inputs);
    inputs->override = true;
    buf_add(&inputs->text, name);
    input->name = buf_slice(&inputs->text);
    if (!read_text(inputs, scan_member(body, "value"), &input->value))
        return refuse_at(wrong, "value", "Expected string");
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

static bool read_map(struct envvar_inputs *inputs, struct slice map, const char *path,
                     struct envvar_input **list, size_t *list_count,
                     struct body_error *wrong)
{
    size_t count;
    struct slice key, value;
    if (scan_type(map) != SCAN_OBJECT)
        return refuse_at(wrong, path, "Expected object");
    if (!count_members(map, &count))
        return refuse_at(wrong, path, "Expected at most 1000 variables");
    if (scan_has_duplicate(map))
        return refuse_at(wrong, path, "Expected each name once");
    struct envvar_input *input = *list = mem_new_array(struct envvar_input, count);
    struct scan_members members = scan_members(map);
    while (scan_next_member(&members, &key, &value)) {
        struct slice quoted = { key.ptr - 1, key.len + 2 };
        if (!read_text(inputs, value, &input->value))
            return refuse_at(wrong, path, "Expected strings as values");
        read_text(inputs, quoted, &input->name);
        input++;
    }
    *list_count = count;
    return true;
}

/* Returns true if source is absent or valid. It names who set a variable, and is not
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

bool envvar_inputs_read_many(struct slice body, struct slice name,
                             struct envvar_inputs *inputs, struct body_error *wrong)
{
    (void)name;
    int override = 0;
    struct slice parents = scan_member(body, "parentVariables");
    envvar_inputs_begin(inputs, body, 0);
    if (!read_flag(body, "override", &override))
        return refuse_at(wrong, "override", "Expected boolean");
    if (!read_flag(body, "isSecret", &inputs->is_secret))
        return refuse_at(wrong, "isSecret", "Expected boolean");
    if (!is_source(scan_member(body, "source")))
        return refuse_at(wrong, "source",
                         "Expected {type: \"user\", userId} or {type: "
                         "\"integration\", integration}");
    inputs->override = override;
    if (!read_map(inputs, scan_member(body, "variables"), "variables", &inputs->own,
                  &inputs->own_count, wrong))
        return false;
    return scan_type(parents) == SCAN_NONE ||
           read_map(inputs, parents, "parentVariables", &inputs->parents,
                    &inputs->parent_count, wrong);
}
