/* A multipart form is read the same however it is cut; an invalid one is rejected. */
#include "api/artifacts/multipart.h"

#include "base/list.h"
#include "tests/support/world/unit.h"

/* Collects the fields as "name:content;", with a * after the name of a file. */
struct form_reader {
    struct multipart form;
    struct failure why;
    struct buf read;
};

static struct form_reader *reader_of(struct multipart *form)
{
    return container_of(form, struct form_reader, form);
}

static enum err on_part(struct multipart *form, struct slice name, bool is_file)
{
    buf_print(&reader_of(form)->read, "%.*s%s:", SLICE_ARG(name), is_file ? "*" : "");
    return OK;
}

static enum err on_content(struct multipart *form, struct slice piece)
{
    buf_add(&reader_of(form)->read, piece);
    return OK;
}

static enum err on_part_end(struct multipart *form)
{
    buf_add_char(&reader_of(form)->read, ';');
    return OK;
}

static const char type[] = "multipart/form-data; boundary=\"a b\"";

static enum err read_form(const char *text, size_t piece, struct form_reader *reader)
{
    struct slice body = slice_of(text);
    *reader = (struct form_reader){
        .form = { .on_part = on_part, .on_content = on_content, .on_part_end = on_part_end }
    };
    reader->form.why = &reader->why;
    enum err err = multipart_init(&reader->form, slice_of(type));
    for (size_t at = 0; !err && at < body.len; at += piece) {
        size_t left = body.len - at;
        err = multipart_feed(&reader->form,
                             (struct slice){ body.ptr + at, left < piece ? left : piece });
    }
    return err ? err : multipart_end(&reader->form);
}

static void finish(struct form_reader *reader)
{
    multipart_finish(&reader->form);
    buf_finish(&reader->read);
}

static void assert_reads(const char *text, const char *expected)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct form_reader reader;
        assert_int_equal(read_form(text, piece, &reader), OK);
        buf_add_char(&reader.read, '\0');
        assert_string_equal(reader.read.ptr, expected);
        finish(&reader);
    }
}

static void assert_refused(const char *text)
{
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        struct form_reader reader;
        assert_int_equal(read_form(text, piece, &reader), ERR_INVALID);
        assert_true(reader.why.text[0]);
        finish(&reader);
    }
}

#define PART(head, content)                                                                \
    "--a b\r\nContent-Disposition: form-data; " head "\r\n\r\n" content "\r\n"
#define END "--a b--\r\n"

static void parts_are_returned_in_order(void **state)
{
    (void)state;
    assert_reads(PART("name=\"key\"", "k") PART("name=\"file\"; filename=\"x\"", "12") END,
                 "key:k;file*:12;");
    assert_reads(PART("name=a", "") END, "a:;");
    assert_reads("--a b--", "");
}

static void content_may_look_like_a_boundary(void **state)
{
    (void)state;
    assert_reads(PART("name=\"f\"", "\r\n--a \r\r\n--a\r\n-\r\n--a c") END,
                 "f:\r\n--a \r\r\n--a\r\n-\r\n--a c;");
    assert_reads(PART("name=\"f\"", "\r\r\n") END, "f:\r\r\n;");
}

static void preamble_and_epilogue_are_ignored(void **state)
{
    (void)state;
    assert_reads("preamble\r\n--a\r\n" PART("name=\"f\"", "1") END "epilogue --a b",
                 "f:1;");
    assert_reads(
        "--a b \t\r\nX: y\r\nCONTENT-DISPOSITION: form-data; NAME=\"f\"\r\n\r\n1\r\n"
        "--a b--",
        "f:1;");
}

static void invalid_form_is_rejected(void **state)
{
    (void)state;
    assert_refused("");
    assert_refused("no divider");
    assert_refused(PART("name=\"f\"", "1"));
    assert_refused("--a bX\r\n");
    assert_refused(PART("filename=\"f\"", "1") END);
    assert_refused("--a b\r\n\r\n1\r\n" END);
    assert_refused("--a b\r\nContent-Disposition: attachment; name=\"f\"\r\n\r\n1\r\n" END);
}

static void heads_and_parts_are_limited(void **state)
{
    (void)state;
    struct buf text = { 0 };
    struct form_reader reader;
    buf_add_text(&text, "--a b\r\n");
    while (text.len < MULTIPART_HEAD_MAX + 100)
        buf_add_text(&text, "X: yyyyyyyyyyyyyyyy\r\n");
    buf_add_char(&text, '\0');
    assert_int_equal(read_form(text.ptr, 4096, &reader), ERR_INVALID);
    finish(&reader);
    buf_clear(&text);
    for (int i = 0; i <= MULTIPART_PARTS_MAX; i++)
        buf_add_text(&text, PART("name=\"f\"", "1"));
    buf_add_text(&text, END);
    buf_add_char(&text, '\0');
    assert_int_equal(read_form(text.ptr, 4096, &reader), ERR_INVALID);
    finish(&reader);
    buf_finish(&text);
}

static void boundary_is_read_from_the_content_type(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        enum err expected;
    } cases[] = {
        { "multipart/form-data; boundary=x", OK },
        { "Multipart/Form-Data;charset=utf-8; boundary=\"x:y\"", OK },
        { "multipart/form-data", ERR_INVALID },
        { "multipart/form-data; boundary=", ERR_INVALID },
        { "multipart/form-data; boundary=\"x \"", ERR_INVALID },
        { "multipart/form-data; boundary=x\"y", ERR_INVALID },
        { "multipart/form-datax; boundary=x", ERR_MEDIA_TYPE },
        { "application/json", ERR_MEDIA_TYPE },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure why;
        struct multipart form = { .why = &why };
        assert_int_equal(multipart_init(&form, slice_of(cases[i].type)), cases[i].expected);
    }
}

static void assert_outside(size_t before, size_t after, enum err expected)
{
    static const char part[] =
        "--a b\r\ncontent-disposition: form-data; name=k\r\n\r\nv\r\n--a b--";
    struct buf text = { 0 };
    struct form_reader reader;
    memset(buf_reserve(&text, before), '.', before);
    text.len = before;
    buf_add_text(&text, before ? "\r\n" : "");
    buf_add_text(&text, part);
    memset(buf_reserve(&text, after + 1), '.', after);
    text.len += after;
    buf_add_char(&text, '\0');
    for (size_t piece = 1000; piece < 100000; piece *= 10) {
        assert_int_equal(read_form(text.ptr, piece, &reader), expected);
        finish(&reader);
    }
    buf_finish(&text);
}

static void bytes_outside_of_parts_are_limited(void **state)
{
    (void)state;
    assert_outside(MULTIPART_OUTSIDE_MAX / 2, MULTIPART_OUTSIDE_MAX / 2 - 16, OK);
    assert_outside(MULTIPART_OUTSIDE_MAX + 1, 0, ERR_INVALID);
    assert_outside(0, MULTIPART_OUTSIDE_MAX + 1, ERR_INVALID);
    assert_outside(MULTIPART_OUTSIDE_MAX, 1, ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_returned_in_order),
        cmocka_unit_test(content_may_look_like_a_boundary),
        cmocka_unit_test(preamble_and_epilogue_are_ignored),
        cmocka_unit_test(bytes_outside_of_parts_are_limited),
        cmocka_unit_test(invalid_form_is_rejected),
        cmocka_unit_test(heads_and_parts_are_limited),
        cmocka_unit_test(boundary_is_read_from_the_content_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
