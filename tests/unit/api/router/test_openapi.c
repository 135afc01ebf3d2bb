/* The OpenAPI document describes every route, and types mean what they look like. */
#include "tests/support/world/unit.h"

#include <jansson.h>

#include "api/request/type.h"
#include "api/router/dispatch.h"
#include "api/router/openapi.h"

static void types_become_json_schema(void **state)
{
    (void)state;
    static const struct {
        const char *type, *schema;
    } cases[] = {
        { "string", "{\"type\":\"string\"}" },
        { "any", "{}" },
        { "datetime", "{\"type\":\"string\",\"format\":\"date-time\"}" },
        { "string(1..128)", "{\"type\":\"string\",\"minLength\":1,\"maxLength\":128}" },
        { "integer(0..5)", "{\"type\":\"integer\",\"minimum\":0,\"maximum\":5}" },
        { "'a'|'b'", "{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}" },
        { "Name", "{\"$ref\":\"#/components/schemas/Name\"}" },
        { "string[][]", "{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":"
                        "{\"type\":\"string\"}}}" },
        { "integer | null", "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}" },
        { "null|'a'", "{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"string\",\"enum\":"
                      "[\"a\"]}]}" },
        { "{}", "{\"type\":\"object\",\"properties\":{},\"required\":[],"
                "\"additionalProperties\":false}" },
        { "{...}", "{\"type\":\"object\",\"properties\":{},\"required\":[],"
                   "\"additionalProperties\":true}" },
        { "{*: string}", "{\"type\":\"object\",\"properties\":{},\"required\":[],"
                         "\"additionalProperties\":{\"type\":\"string\"}}" },
        { "{a: string, b?: X[]}", "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
                                  "\"string\"},\"b\":{\"type\":"
                                  "\"array\",\"items\":{\"$ref\":\"#/components/schemas/"
                                  "X\"}}},\"required\":[\"a\"],"
                                  "\"additionalProperties\":false}" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buf out = { 0 };
        type_add_schema(cases[i].type, &out);
        buf_add_char(&out, '\0');
        assert_string_equal(out.ptr, cases[i].schema);
        buf_finish(&out);
    }
}

static void query_fields_keep_their_brackets(void **state)
{
    (void)state;
    const char *text = "filter[createdAt][from]?: string, expires: integer";
    struct type_field field;
    struct buf type = { 0 };
    assert_true(type_next_field(&text, &field, &type));
    assert_true(slice_is(field.name, "filter[createdAt][from]"));
    assert_true(field.is_optional);
    assert_true(type_next_field(&text, &field, &type));
    assert_true(slice_is(field.name, "expires"));
    assert_false(field.is_optional);
    assert_false(type_next_field(&text, &field, &type));
    buf_finish(&type);
}

static void every_route_has_a_description(void **state)
{
    (void)state;
    size_t count, missing = 0;
    const struct area *const *areas = api_areas(&count);
    for (size_t i = 0; i < count; i++)
        for (const struct route *route = areas[i]->routes; route->path; route++) {
            if (route->id && route->summary && areas[i]->tag)
                continue;
            print_message("its row does not say what %s is for\n", route->path);
            missing++;
        }
    assert_int_equal(missing, 0);
}

static void openapi_document_has_an_operation_per_route(void **state)
{
    (void)state;
    static const char *const methods[] = {
        "get", "head", "post", "put", "patch", "delete"
    };
    size_t count, routes = 0, operations = 0;
    const struct area *const *areas = api_areas(&count);
    struct bytes *document = openapi_write(areas, count);
    json_t *json = json_loadb(document->data, document->len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    const char *path;
    json_t *item;
    json_object_foreach(json_object_get(json, "paths"), path,
                        item) for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]);
                                   i++) operations +=
        json_object_get(item, methods[i]) != NULL;
    for (size_t i = 0; i < count; i++)
        for (const struct route *route = areas[i]->routes; route->path; route++)
            routes++;
    assert_int_equal(operations, routes);
    json_t *version = json_object_get(json_object_get(json, "info"), "version");
    assert_string_equal(json_string_value(version), "2024-04");
    json_decref(json);
    bytes_unref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_become_json_schema),
        cmocka_unit_test(query_fields_keep_their_brackets),
        cmocka_unit_test(every_route_has_a_description),
        cmocka_unit_test(openapi_document_has_an_operation_per_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
