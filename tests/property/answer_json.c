/* Answers for json.test.mjs: reads lines of hexadecimal bytes on stdin, writes one for
 * each.
 *
 *     HEX          the value as the readers find it, strings decoded and spelled again; or
 *                  "refused"; or "torn" when the result depends on how the bytes arrive
 *     HEX HEX      "same" or "other": two valid texts as values */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/scan.h"

/* quoted: a string with its quotes. */
static void print_decoded(struct slice quoted)
{
    struct buf decoded = { 0 }, text = { 0 };
    scan_string(quoted, &decoded);
    buf_add_json(&text, buf_slice(&decoded));
    printf("%.*s", SLICE_ARG(buf_slice(&text)));
    buf_finish(&decoded);
    buf_finish(&text);
}

static void print_value(struct slice value);

static void print_object(struct slice object)
{
    struct scan_members members = scan_members(object);
    struct slice key, value;
    const char *comma = "";
    putchar('{');
    while (scan_next_member(&members, &key, &value)) {
        printf("%s", comma);
        print_decoded((struct slice){ key.ptr - 1, key.len + 2 });
        putchar(':');
        print_value(value);
        comma = ",";
    }
    putchar('}');
}

static void print_array(struct slice array)
{
    struct scan_members elements = scan_members(array);
    struct slice value;
    const char *comma = "";
    putchar('[');
    while (scan_next_element(&elements, &value)) {
        printf("%s", comma);
        print_value(value);
        comma = ",";
    }
    putchar(']');
}

static void print_value(struct slice value)
{
    switch (scan_type(value)) {
    case SCAN_OBJECT: print_object(value); return;
    case SCAN_ARRAY: print_array(value); return;
    case SCAN_STRING: print_decoded(slice_trim(value)); return;
    default: printf("%.*s", SLICE_ARG(slice_trim(value)));
    }
}

static bool accepted_bytewise(struct slice text)
{
    struct scan scan;
    scan_init(&scan);
    for (size_t i = 0; i < text.len; i++)
        if (scan_feed(&scan, (struct slice){ text.ptr + i, 1 }))
            return false;
    return scan_finish(&scan) == OK;
}

static void answer(struct slice text)
{
    bool accepted = scan_is_json(text);
    if (accepted != accepted_bytewise(text))
        printf("torn");
    else if (accepted)
        print_value(text);
    else
        printf("refused");
}

static unsigned nibble(char digit)
{
    return (unsigned)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

/* Decodes in place. */
static struct slice unhex(char *digits)
{
    size_t len = strcspn(digits, "\n") / 2;
    for (size_t i = 0; i < len; i++)
        digits[i] = (char)(nibble(digits[2 * i]) << 4 | nibble(digits[2 * i + 1]));
    return (struct slice){ digits, len };
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, stdin) > 0) {
        char *second = strchr(line, ' ');
        struct slice text, other;
        if (second) {
            *second++ = '\0';
            other = unhex(second);
        }
        text = unhex(line);
        if (second)
            printf("%s", scan_equal(text, other) ? "same" : "other");
        else
            answer(text);
        putchar('\n');
    }
    free(line);
    return 0;
}
