/* A backup manifest is accepted only if it is complete and names only files of a backup. */
#include "tests/support/world/unit.h"

#include "server/backup/backup_manifest.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID "deployment_123456789abcdefghijkm"
#define HEAD                                                                               \
    "{\"format\":1,\"runcast\":\"0.1.0\",\"schema\":13,\"epoch\":\"0011223344556677\","    \
    "\"madeAt\":\"2026-01-31T09:00:00.000Z\",\"holdsKey\":true"
#define ONE(name) "{\"name\":\"" name "\",\"bytes\":1,\"sha256\":\"" HASH "\"}"
#define DATABASE ONE("runcast.db")

static enum err read_text(struct slice text, struct failure *why)
{
    struct backup_manifest manifest = { 0 };
    enum err err = backup_manifest_read(text, &manifest, why);
    if (err)
        assert_null(manifest.files);
    backup_manifest_finish(&manifest);
    return err;
}

static void manifest_is_read_as_it_was_written(void **state)
{
    static const struct backup_manifest begun = { .runcast = "0.1.0",
                                                  .schema = 13,
                                                  .epoch = "00112233445566aa",
                                                  .made_at = 1769850000123,
                                                  .key = "1a2b3c4d",
                                                  .holds_key = true };
    static const char *const names[] = { "runcast.db",
                                         "encryption.key",
                                         "encryption.key.1a2b3c4d",
                                         "encryption.key.next",
                                         "deployments/" ID ".tar.gz",
                                         "deployments/" ID ".index.json",
                                         "deployments/" ID ".log" };
    enum { COUNT = sizeof(names) / sizeof(names[0]) };
    struct backup_manifest written = begun, found;
    struct buf text = { 0 };
    struct failure why;
    (void)state;
    for (uint64_t i = 0; i < COUNT; i++) {
        struct file_facts facts = { .bytes = i << 32, .sha256 = HASH };
        backup_manifest_add(&written, names[i], &facts);
    }
    backup_manifest_write(&written, &text);
    assert_int_equal(backup_manifest_read(buf_slice(&text), &found, &why), OK);
    assert_string_equal(found.runcast, written.runcast);
    assert_int_equal(found.schema, 13);
    assert_string_equal(found.epoch, written.epoch);
    assert_int_equal(found.made_at, written.made_at);
    assert_string_equal(found.key, written.key);
    assert_true(found.holds_key);
    assert_int_equal(found.count, COUNT);
    assert_int_equal(backup_manifest_bytes(&found),
                     (uint64_t)COUNT * (COUNT - 1) / 2 << 32);
    for (size_t i = 0; i < COUNT; i++) {
        const struct backup_file *file = backup_manifest_find(&found, names[i]);
        assert_non_null(file);
        assert_string_equal(file->facts.sha256, HASH);
        assert_int_equal(file->facts.bytes, (uint64_t)i << 32);
    }
    assert_null(backup_manifest_find(&found, "deployments"));
    backup_manifest_finish(&found);
    backup_manifest_finish(&written);
    buf_finish(&text);
}

static void only_files_of_a_backup_have_a_valid_name(void **state)
{
    static const char *const wrong[] = {
        "",
        "/etc/passwd",
        "../runcast.db",
        "./runcast.db",
        "runcast.db/",
        "runcast.db-wal",
        "runcast.db.lock",
        "supervise.token",
        "admin.sock",
        "manifest.json",
        "deployments",
        "deployments/",
        "encryption.key.",
        "encryption.key.NEXT",
        "encryption.key.1a2b3c4",
        "encryption.key.1a2b3c4g",
        "encryption.key/../x",
        "deployments/../" ID ".tar.gz",
        "deployments//" ID ".tar.gz",
        "deployments/" ID,
        "deployments/" ID ".tar",
        "deployments/" ID ".tar.gz.part",
        "deployments/" ID "/.log",
        "deployments/x.tar.gz",
        "deployments/deployment_../../../../etc/x.log",
        "artifacts/" ID ".tar.gz",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        if (backup_name_is_right(slice_of(wrong[i])))
            fail_msg("'%s' is taken for a file of a backup", wrong[i]);
    assert_false(backup_name_is_right(
        (struct slice){ "runcast.db\0/../x", sizeof("runcast.db\0/../x") - 1 }));
}

static void invalid_manifest_is_rejected_with_a_reason(void **state)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        { "", "it is not whole" },
        { "[]", "it is not whole" },
        { HEAD ",\"files\":[" DATABASE, "it is not whole" },
        { "{\"format\":2}", "made by a newer runcast" },
        { "{\"format\":1}", "a member is missing" },
        { HEAD "}", "names no files" },
        { HEAD ",\"files\":{}}", "names no files" },
        { HEAD ",\"files\":[]}", "names no database" },
        { HEAD ",\"key\":\"../../x1\",\"files\":[" DATABASE "]}", "not the id of a key" },
        { HEAD ",\"files\":[" DATABASE ",1]}", "is not a file of a backup" },
        { HEAD ",\"files\":[" DATABASE "," DATABASE "]}", "names a file twice" },
        { HEAD ",\"files\":[" ONE("../x") "]}",
          "\"../x\", which is not a file of a backup" },
        { HEAD ",\"files\":[" ONE("runcast.db\\u0000") "]}", "is not a file of a backup" },
        { HEAD ",\"files\":[{\"name\":\"runcast.db\",\"bytes\":-1,\"sha256\":\"" HASH
               "\"}]}",
          "size or hash" },
        { HEAD ",\"files\":[{\"name\":\"runcast.db\",\"bytes\":1,\"sha256\":\"00\"}]}",
          "size or hash" },
    };
    struct failure why;
    (void)state;
    assert_int_equal(read_text(SLICE(HEAD ",\"files\":[" DATABASE "]}"), &why), OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_text(slice_of(cases[i].text), &why), ERR_INVALID);
        if (!strstr(why.text, cases[i].said))
            fail_msg("%s: '%s' and not '%s'", cases[i].text, why.text, cases[i].said);
    }
}

static void truncated_manifest_is_rejected(void **state)
{
    static const char whole[] = HEAD ",\"files\":[" DATABASE "]}";
    struct failure why;
    (void)state;
    for (size_t len = 0; len < sizeof(whole) - 1; len++)
        assert_int_equal(read_text((struct slice){ whole, len }, &why), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manifest_is_read_as_it_was_written),
        cmocka_unit_test(only_files_of_a_backup_have_a_valid_name),
        cmocka_unit_test(invalid_manifest_is_rejected_with_a_reason),
        cmocka_unit_test(truncated_manifest_is_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
