/* Operations change what they name, and leave every other byte alone. */
#include "tests/support/world/unit.h"

#include <stdio.h>

#include "base/json/scan.h"
#include "core/model/metadata.h"

static const struct {
    const char *object, *operations, *result;
} cases[] = {
    /* nothing to do */
    { NULL, "[]", "{}" },
    { "{}", "[]", "{}" },
    { " { \"a\" : 1e400 } ", "[]", "{ \"a\" : 1e400 }" },
    { "null", "[]", "{}" },

    /* set */
    { NULL, "[{'type':'set','key':'a','value':1}]", "{'a':1}" },
    { "{'a':1,'b':2}", "[{'type':'set','key':'a','value':'x'}]", "{'a':'x','b':2}" },
    { "{'a':1,'b':2}", "[{'type':'set','key':'c','value':null}]",
      "{'a':1,'b':2,'c':null}" },
    { "{'a':1}", "[{'type':'set','key':'a','value': [ 1, {'x' : -0} ] }]",
      "{'a':[ 1, {'x' : -0} ]}" },
    { "{'a': 1e400 , 'b':[1,  2],'c':12345678901234567890}",
      "[{'type':'set','key':'z','value':0.10}]",
      "{'a':1e400,'b':[1,  2],'c':12345678901234567890,'z':0.10}" },
    { "{}", "[{'type':'set','key':'','value':1}]", "{'':1}" },
    { "{'a.b':1}", "[{'type':'set','key':'a.b','value':2}]", "{'a.b':2}" },
    { "{}", "[{'type':'set','key':'$','value':2},{'type':'set','key':'$[0]','value':3}]",
      "{'$':2,'$[0]':3}" },

    /* names in other spellings are the same names */
    { "{'\\u0061':1}", "[{'type':'set','key':'a','value':2}]", "{'\\u0061':2}" },
    { "{'a':1}", "[{'type':'set','key':'\\u0061','value':2}]", "{'a':2}" },
    { "{'\\u0061':1}",
      "[{'type':'append','key':'a','value':2},{'type':'set','key':'$.a[0]','value':3}]",
      "{'\\u0061':[3,2]}" },
    { "{}",
      "[{'type':'set','key':'\\n','value':1},{'type':'append','key':'\\n','value':2},"
      "{'type':'delete','key':'\\n'}]",
      "{}" },
    { "{}", "[{'type':'set','key':'\\n\\\\','value':2}]", "{'\\n\\\\':2}" },
    { "{}", "[{'\\u0074ype':'s\\u0065t','key':'a','value':2}]", "{'a':2}" },

    /* the last of several members with one name counts, the others go */
    { "{'a':1,'b':2,'a':3,'c':4}", "[{'type':'increment','key':'a','value':1}]",
      "{'b':2,'a':4,'c':4}" },
    { "{'a':1,'b':2,'\\u0061':3,'a':4}", "[{'type':'delete','key':'a'}]", "{'b':2}" },
    { "{'a':1,'a':2,'b':3,'b':4}", "[{'type':'set','key':'b','value':5}]",
      "{'a':1,'a':2,'b':5}" },
    { "{}", "[{'type':'set','type':'delete','key':'b','value':5}]", "{}" },

    /* paths */
    { "{}", "[{'type':'set','key':'$.a','value':1}]", "{'a':1}" },
    { "{}", "[{'type':'set','key':'$.a.b.c','value':1}]", "{'a':{'b':{'c':1}}}" },
    { "{'a':{'x': 1 ,'b':2}}", "[{'type':'set','key':'$.a.b','value':3}]",
      "{'a':{'x':1,'b':3}}" },
    { "{'l':[1,{'n':2},3]}", "[{'type':'set','key':'$.l[1].n','value':0}]",
      "{'l':[1,{'n':0},3]}" },
    { "{'l':[1,2]}", "[{'type':'set','key':'$.l.1','value':0}]", "{'l':[1,0]}" },
    { "{'l':[1,2]}", "[{'type':'set','key':'$.l[2]','value':3}]", "{'l':[1,2,3]}" },
    { "{'l':[1,2]}", "[{'type':'set','key':'$.l[2].a','value':3}]", "{'l':[1,2,{'a':3}]}" },
    { "{'a':{}}", "[{'type':'set','key':'$.a[\\'b c\\']','value':1}]", "{'a':{'b c':1}}" },
    { "{'a':{}}", "[{'type':'set','key':'$.a[\\\"b.c\\\"].d','value':1}]",
      "{'a':{'b.c':{'d':1}}}" },
    { "{}", "[{'type':'set','key':'$.a[0]','value':1}]", "{'a':{'0':1}}" },
    { "{'a':{'b':1}}",
      "[{'type':'set','key':'$.a.c','value':2},{'type':'increment','key':'$.a.b','value':1}"
      ","
      "{'type':'set','key':'a','value':{'d':0}},{'type':'set','key':'$.a.e','value':1}]",
      "{'a':{'d':0,'e':1}}" },

    /* paths that lead nowhere change nothing */
    { "{'a':5}", "[{'type':'set','key':'$.a.b','value':1}]", "{'a':5}" },
    { "{'a':null}", "[{'type':'increment','key':'$.a.b','value':1}]", "{'a':null}" },
    { "{'l':[1]}", "[{'type':'set','key':'$.l[2]','value':1}]", "{'l':[1]}" },
    { "{'l':[1]}", "[{'type':'set','key':'$.l.x','value':1}]", "{'l':[1]}" },
    { "{'l':[1]}", "[{'type':'append','key':'$.l[-1]','value':1}]", NULL },

    /* delete */
    { "{'a':1,'b':2,'c':3}", "[{'type':'delete','key':'b'}]", "{'a':1,'c':3}" },
    { "{'a':1}", "[{'type':'delete','key':'b'}]", "{'a':1}" },
    { "{'a':{'b':1,'c':2}}", "[{'type':'delete','key':'$.a.b'}]", "{'a':{'c':2}}" },
    { "{'l':[1,2,3]}", "[{'type':'delete','key':'$.l[0]'}]", "{'l':[2,3]}" },
    { "{'a':1}", "[{'type':'delete','key':'$.a.b'}]", "{'a':1}" },
    { "{'a':1}", "[{'type':'delete','key':'$.x.y.z'}]", "{'a':1}" },
    { "{'a':1}", "[{'type':'delete','key':'a'},{'type':'set','key':'a','value':2}]",
      "{'a':2}" },

    /* append */
    { "{}", "[{'type':'append','key':'l','value':1}]", "{'l':[1]}" },
    { "{'l':[1, 2]}", "[{'type':'append','key':'l','value':{'a' : 3}}]",
      "{'l':[1,2,{'a' : 3}]}" },
    { "{'l':'x'}", "[{'type':'append','key':'l','value':1}]", "{'l':['x',1]}" },
    { "{'l':null}", "[{'type':'append','key':'l','value':1}]", "{'l':[null,1]}" },
    { "{'l':{'a': 1}}", "[{'type':'append','key':'l','value':1}]", "{'l':[{'a':1},1]}" },
    { "{'l':[]}",
      "[{'type':'append','key':'l','value':[1]},{'type':'append','key':'l','value':2}]",
      "{'l':[[1],2]}" },
    { "{'a':{'l':[1]}}", "[{'type':'append','key':'$.a.l','value':2}]",
      "{'a':{'l':[1,2]}}" },
    { "{}", "[{'type':'append','key':'$.a.l','value':2}]", "{'a':{'l':[2]}}" },

    /* remove */
    { "{'l':[1,2,1.0,'1',1e0]}", "[{'type':'remove','key':'l','value':1}]",
      "{'l':[2,'1']}" },
    { "{'l':[{'a':1,'b':[2]},{'b':[ 2 ],'a':1},{'a':1}]}",
      "[{'type':'remove','key':'l','value':{'b':[2],'a':1}}]", "{'l':[{'a':1}]}" },
    { "{'l':[1]}", "[{'type':'remove','key':'l','value':2}]", "{'l':[1]}" },
    { "{'l':1}", "[{'type':'remove','key':'l','value':1}]", "{'l':1}" },
    { "{'l':{'a':1}}", "[{'type':'remove','key':'l','value':1}]", "{'l':{'a':1}}" },
    { "{}", "[{'type':'remove','key':'l','value':1}]", "{}" },
    { "{}", "[{'type':'remove','key':'$.l.m','value':1}]", "{}" },
    { "{'l':[[1],[2]]}",
      "[{'type':'append','key':'$.l[0]','value':2},{'type':'remove','key':'l','value':[1,2]"
      "}]",
      "{'l':[[2]]}" },

    /* increment */
    { "{}", "[{'type':'increment','key':'n','value':1}]", "{'n':1}" },
    { "{'n':1}", "[{'type':'increment','key':'n','value':-3}]", "{'n':-2}" },
    { "{'n':'7'}", "[{'type':'increment','key':'n','value':1}]", "{'n':1}" },
    { "{'n':[7]}", "[{'type':'increment','key':'n','value':1}]", "{'n':1}" },
    { "{'n':0.1}", "[{'type':'increment','key':'n','value':0.2}]",
      "{'n':0.30000000000000004}" },
    { "{'n':1.5}", "[{'type':'increment','key':'n','value':0.5}]", "{'n':2}" },
    { "{'n':9007199254740993}", "[{'type':'increment','key':'n','value':1}]",
      "{'n':9007199254740994}" },
    { "{'n':9223372036854775806}", "[{'type':'increment','key':'n','value':1}]",
      "{'n':9223372036854775807}" },
    { "{'n':9223372036854775807}", "[{'type':'increment','key':'n','value':1}]",
      "{'n':9223372036854776000}" },
    { "{'n':-9223372036854775808}", "[{'type':'increment','key':'n','value':-1}]",
      "{'n':-9223372036854776000}" },
    { "{'n':1e400}", "[{'type':'increment','key':'n','value':1}]", "{'n':1e400}" },
    { "{'n':1e308}", "[{'type':'increment','key':'n','value':1e308}]", "{'n':1e308}" },
    { "{'l':[1,2]}", "[{'type':'increment','key':'$.l[1]','value':5}]", "{'l':[1,7]}" },
    { "{}", "[{'type':'increment','key':'$.a.b','value':5}]", "{'a':{'b':5}}" },

    /* update */
    { "{'a':1,'b':2}", "[{'type':'update','value':{ 'c':3}}]", "{ 'c':3}" },
    { "{'a':1}", "[{'type':'update','value':{}},{'type':'set','key':'b','value':2}]",
      "{'b':2}" },
};

/* Makes the cases readable: ' stands for ", and \' for '. */
static struct slice quoted(const char *text, char *out)
{
    if (!text)
        return (struct slice){ 0 };
    size_t len = 0;
    for (const char *at = text; *at; at++) {
        bool escaped = *at == '\\';
        at += escaped;
        if (escaped && *at != '\'')
            out[len++] = '\\';
        out[len++] = *at == '\'' && !escaped ? '"' : *at;
    }
    return (struct slice){ out, len };
}

static void operations_change_only_what_they_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char a[512], b[512], c[512];
        struct slice object = quoted(cases[i].object, a);
        struct slice operations = quoted(cases[i].operations, b);
        struct slice result = quoted(cases[i].result, c);
        assert_true(!object.ptr || scan_is_json(object));
        assert_true(scan_is_json(operations));

        struct buf out = { 0 };
        struct failure why = { 0 };
        enum err err = metadata_apply(object, operations, &out, &why);
        assert_int_equal(err, result.ptr ? OK : ERR_INVALID);
        if (!slice_equal(buf_slice(&out), result))
            print_message("case %zu: %.*s\n", i, SLICE_ARG(buf_slice(&out)));
        assert_true(slice_equal(buf_slice(&out), result));
        assert_int_equal(metadata_check(operations, &why), err);
        buf_finish(&out);
    }
}

static void invalid_operation_is_rejected_with_the_reason(void **state)
{
    (void)state;
    static const struct {
        const char *operations, *reason;
    } refusals[] = {
        { "{}", "operations must be an array" },
        { "null", "operations must be an array" },
        { "[1]", "operations[0]: an operation must be an object" },
        { "[{}]", "operations[0]: type must be" },
        { "[{'type':7,'key':'a'}]", "operations[0]: type must be" },
        { "[{'type':'merge','key':'a','value':1}]", "operations[0]: type must be" },
        { "[{'type':'set','value':1}]", "operations[0]: key must be a string" },
        { "[{'type':'set','key':7,'value':1}]", "operations[0]: key must be a string" },
        { "[{'type':'set','key':'a'}]", "operations[0]: value is missing" },
        { "[{'':0,'':0,'':0,'':0,'':0,'':0,'':0,'':0,'':0,'':0,'':0,'':0,'':0,'':0,"
          "'type':'delete','key':'a','':0}]",
          "operations[0]: an operation must have at most 16 members" },
        { "[{'type':'append','key':'a'}]", "operations[0]: value is missing" },
        { "[{'type':'remove','key':'a'}]", "operations[0]: value is missing" },
        { "[{'type':'increment','key':'a'}]", "operations[0]: value must be a number" },
        { "[{'type':'increment','key':'a','value':'1'}]", "value must be a number" },
        { "[{'type':'increment','key':'a','value':1e999}]", "value must be a number" },
        { "[{'type':'update'}]", "operations[0]: value must be an object" },
        { "[{'type':'update','value':[]}]", "operations[0]: value must be an object" },
        { "[{'type':'update','value':null}]", "operations[0]: value must be an object" },
        { "[{'type':'set','key':'__proto__','value':1}]", "must not name __proto__" },
        { "[{'type':'set','key':'$.a.constructor','value':1}]", "must not name __proto__" },
        { "[{'type':'delete','key':'$.a[\\'prototype\\'].b'}]", "must not name __proto__" },
        { "[{'type':'delete','key':'__prot\\u006f__'}]", "must not name __proto__" },
        { "[{'type':'set','key':'$.','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.a.','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.a..b','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.a[','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.a[]','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.a[x]','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.a[\\'x]','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.a[\\'x\\'','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.a[0]b','value':1}]", "key is not a path" },
        { "[{'type':'set','key':'$.*','value':1}]", "key is not a path" },
        { "[{'type':'delete','key':'a'},{'type':'set','key':'b'}]",
          "operations[1]: value" },
    };
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        char text[512];
        struct slice operations = quoted(refusals[i].operations, text);
        assert_true(scan_is_json(operations));
        struct buf out = { 0 };
        buf_add_text(&out, "before");
        struct failure why = { 0 };
        assert_int_equal(metadata_apply(SLICE("{\"a\":1}"), operations, &out, &why),
                         ERR_INVALID);
        if (!strstr(why.text, refusals[i].reason))
            print_message("case %zu: %s\n", i, why.text);
        assert_non_null(strstr(why.text, refusals[i].reason));
        assert_true(slice_is(buf_slice(&out), "before"));

        struct failure again = { 0 };
        assert_int_equal(metadata_check(operations, &again), ERR_INVALID);
        assert_string_equal(again.text, why.text);
        buf_finish(&out);
    }
}

static void result_is_appended_to_the_buffer(void **state)
{
    (void)state;
    struct buf out = { 0 };
    struct failure why;
    buf_add_text(&out, "before ");
    assert_int_equal(metadata_apply(SLICE("{\"a\":1}"), SLICE("[]"), &out, &why), OK);
    assert_true(slice_is(buf_slice(&out), "before {\"a\":1}"));
    buf_finish(&out);
}

static void at_most_a_thousand_operations_are_accepted(void **state)
{
    (void)state;
    struct buf operations = { 0 }, out = { 0 };
    struct failure why;
    buf_add_char(&operations, '[');
    for (int i = 0; i < METADATA_OPERATIONS_MAX; i++) {
        buf_add_text(&operations, i ? "," : "");
        buf_add_text(&operations, "{\"type\":\"increment\",\"key\":\"n\",\"value\":2}");
    }
    buf_add_char(&operations, ']');
    assert_int_equal(metadata_apply(SLICE("{}"), buf_slice(&operations), &out, &why), OK);
    assert_true(slice_is(buf_slice(&out), "{\"n\":2000}"));

    operations.len--;
    buf_add_text(&operations, ",{\"type\":\"delete\",\"key\":\"n\"}]");
    assert_int_equal(metadata_check(buf_slice(&operations), &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "at most 1000"));
    buf_finish(&operations);
    buf_finish(&out);
}

static void add_nested(struct buf *buf, int depth)
{
    for (int i = 0; i < depth; i++)
        buf_add_char(buf, '[');
    for (int i = 0; i < depth; i++)
        buf_add_char(buf, ']');
}

static void value_of_any_depth_can_be_set(void **state)
{
    (void)state;
    for (int depth = 197; depth <= 20000; depth = depth < 200 ? depth + 1 : depth * 10) {
        struct buf operations = { 0 }, out = { 0 };
        struct failure why;
        buf_add_text(&operations, "[{\"type\":\"set\",\"key\":\"$.a.b\",\"value\":");
        add_nested(&operations, depth);
        buf_add_text(&operations, "}]");
        enum err err = metadata_apply(SLICE("{}"), buf_slice(&operations), &out, &why);
        assert_int_equal(err, OK);
        assert_true(scan_is_json(buf_slice(&out)));
        buf_finish(&operations);
        buf_finish(&out);
    }
}

static void add_repeated(struct buf *buf, const char *piece, int count)
{
    for (int i = 0; i < count; i++) {
        buf_add_text(buf, i ? "," : "");
        buf_add_text(buf, piece);
    }
}

/* Each would be quadratic, and take half a minute or more. Their work is counted. */
static void operations_that_would_take_too_long_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *element, *operation;
        int elements;
    } attacks[] = {
        { "1", "{\"type\":\"remove\",\"key\":\"l\",\"value\":2}", 120000 },
        { "{\"a\":1,\"b\":2}", "{\"type\":\"remove\",\"key\":\"l\",\"value\":{\"a\":1}}",
          18000 },
        { "[[1]]", "{\"type\":\"remove\",\"key\":\"l\",\"value\":[[2]]}", 40000 },
    };
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        struct buf object = { 0 }, operations = { 0 }, out = { 0 };
        struct failure why;
        buf_add_text(&object, "{\"l\":[");
        add_repeated(&object, attacks[i].element, attacks[i].elements);
        buf_add_text(&object, "]}");
        buf_add_char(&operations, '[');
        add_repeated(&operations, attacks[i].operation, METADATA_OPERATIONS_MAX);
        buf_add_char(&operations, ']');

        enum err err =
            metadata_apply(buf_slice(&object), buf_slice(&operations), &out, &why);
        assert_int_equal(err, ERR_INVALID);
        assert_non_null(strstr(why.text, "takes too long"));
        assert_int_equal(out.len, 0);
        buf_finish(&object);
        buf_finish(&operations);
        buf_finish(&out);
    }
}

/* Members with other names are skipped without being read: a progress bar next to many
 * results keeps working. */
static void sixty_names_are_found_among_many_members(void **state)
{
    (void)state;
    struct buf object = { 0 }, operations = { 0 }, out = { 0 };
    struct failure why = { 0 };
    for (int i = 0; i < 15000; i++)
        buf_print(&object, "%s\"a%d\":0", i ? "," : "{", i);
    buf_add_char(&object, '}');
    for (int i = 0; i < 60; i++)
        buf_print(&operations, "%s{\"type\":\"increment\",\"key\":\"a%d\",\"value\":1}",
                  i ? "," : "[", 250 * i);
    buf_add_char(&operations, ']');
    assert_int_equal(metadata_apply(buf_slice(&object), buf_slice(&operations), &out, &why),
                     OK);
    assert_int_equal(out.len, object.len);
    assert_true(slice_is(scan_member(buf_slice(&out), "a0"), "1"));
    assert_true(slice_is(scan_member(buf_slice(&out), "a1"), "0"));
    assert_true(slice_is(scan_member(buf_slice(&out), "a14750"), "1"));
    buf_finish(&object);
    buf_finish(&operations);
    buf_finish(&out);
}

/* Objects with many members, in a list; {"a":{"a":…}} with the same members in another
 * order. */
static void add_flat(struct buf *out, int members)
{
    for (int i = 0; i < members; i++)
        buf_print(out, "%c\"k%d\":%d", i ? ',' : '{', i, i);
    buf_add_char(out, '}');
}

static void add_deep(struct buf *out, int levels, bool upwards)
{
    for (int i = 0; i < levels; i++)
        buf_add_text(out, upwards ? "{\"x\":1,\"y\":" : "{\"y\":");
    buf_add_text(out, "{}");
    for (int i = 0; i < levels; i++)
        buf_add_text(out, upwards ? "}" : ",\"x\":1}");
}

static enum err remove_from_list(const struct buf *element, int count,
                                 const struct buf *value, int times)
{
    struct buf object = { 0 }, operations = { 0 }, out = { 0 };
    struct failure why;
    buf_add_text(&object, "{\"l\":[");
    for (int i = 0; i < count; i++) {
        buf_add_text(&object, i ? "," : "");
        buf_add(&object, buf_slice(element));
    }
    buf_add_text(&object, "]}");
    for (int i = 0; i < times; i++) {
        buf_add_text(&operations, i ? "," : "[");
        buf_add_text(&operations, "{\"type\":\"remove\",\"key\":\"l\",\"value\":");
        buf_add(&operations, buf_slice(value));
        buf_add_char(&operations, '}');
    }
    buf_add_char(&operations, ']');
    enum err err = metadata_apply(buf_slice(&object), buf_slice(&operations), &out, &why);
    if (err)
        assert_non_null(strstr(why.text, "takes too long"));
    buf_finish(&object);
    buf_finish(&operations);
    buf_finish(&out);
    return err;
}

/* A request of 18 KB, which used to take a fifth of a second. */
static void comparison_with_a_large_object_counts_its_sorted_members(void **state)
{
    (void)state;
    struct buf small = { 0 }, large = { 0 };
    add_flat(&small, 1);
    add_flat(&large, 1900);
    assert_int_equal(remove_from_list(&small, 700, &large, 1), ERR_INVALID);
    assert_int_equal(remove_from_list(&small, 2000, &small, 2), OK);
    buf_finish(&small);
    buf_finish(&large);
}

static void comparison_of_deep_values_counts_each_level(void **state)
{
    (void)state;
    struct buf up = { 0 }, down = { 0 };
    add_deep(&up, 150, true);
    add_deep(&down, 150, false);
    assert_int_equal(remove_from_list(&up, 100, &down, 1), ERR_INVALID);
    assert_int_equal(remove_from_list(&up, 1, &down, 1), OK);
    buf_finish(&up);
    buf_finish(&down);
}

static void repeated_members_are_dropped_in_one_pass(void **state)
{
    (void)state;
    struct buf object = { 0 }, out = { 0 };
    struct failure why;
    buf_add_char(&object, '{');
    add_repeated(&object, "\"a\":1", 40000);
    buf_add_char(&object, '}');
    struct slice operations = SLICE("[{\"type\":\"increment\",\"key\":\"a\",\"value\":1}]");
    assert_int_equal(metadata_apply(buf_slice(&object), operations, &out, &why), OK);
    assert_true(slice_is(buf_slice(&out), "{\"a\":2}"));
    buf_finish(&object);
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_change_only_what_they_name),
        cmocka_unit_test(invalid_operation_is_rejected_with_the_reason),
        cmocka_unit_test(result_is_appended_to_the_buffer),
        cmocka_unit_test(at_most_a_thousand_operations_are_accepted),
        cmocka_unit_test(value_of_any_depth_can_be_set),
        cmocka_unit_test(operations_that_would_take_too_long_are_rejected),
        cmocka_unit_test(sixty_names_are_found_among_many_members),
        cmocka_unit_test(comparison_with_a_large_object_counts_its_sorted_members),
        cmocka_unit_test(comparison_of_deep_values_counts_each_level),
        cmocka_unit_test(repeated_members_are_dropped_in_one_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
