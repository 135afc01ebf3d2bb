/* A sealed text opens only with the same key and in the same place. */
#include "tests/support/world/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/vault/key_file.h"
#include "base/vault/secret.h"
#include "base/vault/secret_file.h"
#include "base/vault/vault.h"

#define KEY_HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KEY_BASE64 "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
#define OTHER_HEX "fffefdfcfbfaf9f8f7f6f5f4f3f2f1f0efeeedecebeae9e8e7e6e5e4e3e2e1e0"

/* "a secret" for "proj/dev/NAME", sealed with KEY_HEX by another program (node's
 * crypto). */
static const char sealed_elsewhere[] = "AaChoqOkpaanqKmqq4c4D0gmuWfL-uaxMm81cL0MoDL-o0ylLw";

static struct vault *open_vault(const char *key)
{
    struct vault *vault = NULL;
    struct failure why;
    assert_int_equal(vault_open(slice_of(key), NULL, &vault, &why), OK);
    return vault;
}

static struct buf seal(const struct vault *vault, const char *context, struct slice plain)
{
    struct buf sealed = { 0 };
    vault_seal(vault, slice_of(context), plain, &sealed);
    return sealed;
}

static enum err unseal(struct vault *vault, const char *context, struct slice sealed)
{
    struct buf plain = { 0 };
    buf_add_text(&plain, "kept");
    enum err err = vault_unseal(vault, slice_of(context), sealed, &plain);
    assert_true(slice_starts(buf_slice(&plain), "kept"));
    if (err)
        assert_int_equal(plain.len, 4); /* nothing is added when unsealing fails */
    buf_finish(&plain);
    return err;
}

static void sealed_value_is_opened_again(void **state)
{
    (void)state;
    static const size_t lengths[] = { 0, 1, 2, 3, 15, 16, 17, 31, 100, 4096, 100000 };
    struct vault *vault = open_vault(KEY_HEX);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        char *bytes = mem_alloc(lengths[i]);
        for (size_t j = 0; j < lengths[i]; j++)
            bytes[j] = (char)(j * 7);
        struct slice plain = { bytes, lengths[i] };
        struct buf sealed = seal(vault, "here", plain), opened = { 0 };
        assert_int_equal(vault_unseal(vault, SLICE("here"), buf_slice(&sealed), &opened),
                         OK);
        assert_true(slice_equal(buf_slice(&opened), plain));
        buf_finish(&sealed);
        buf_finish(&opened);
        free(bytes);
    }
    vault_close(vault);
}

static void a_value_sealed_by_another_program_opens(void **state)
{
    (void)state;
    struct vault *vault = open_vault(KEY_BASE64);
    struct buf plain = { 0 };
    assert_int_equal(
        vault_unseal(vault, SLICE("proj/dev/NAME"), slice_of(sealed_elsewhere), &plain),
        OK);
    assert_true(slice_is(buf_slice(&plain), "a secret"));
    buf_finish(&plain);
    vault_close(vault);
}

static void sealing_twice_gives_different_texts_that_hide_the_value(void **state)
{
    (void)state;
    struct vault *vault = open_vault(KEY_HEX);
    struct slice canary = SLICE("CANARY_c2VjcmV0_CANARY");
    struct buf one = seal(vault, "here", canary), two = seal(vault, "here", canary);
    assert_false(slice_equal(buf_slice(&one), buf_slice(&two)));

    unsigned char bytes[256];
    size_t len;
    assert_int_equal(text_from_base64url(buf_slice(&one), bytes, &len), OK);
    assert_int_equal(len, canary.len + 33);
    assert_null(memmem(bytes, len, "CANARY", 6));
    buf_finish(&one);
    buf_finish(&two);
    vault_close(vault);
}

static void value_does_not_open_with_another_key_or_place(void **state)
{
    (void)state;
    struct vault *vault = open_vault(KEY_HEX), *other = open_vault(OTHER_HEX);
    struct buf sealed = seal(vault, "proj/dev/NAME", SLICE("value"));
    static const char *const places[] = { "", "proj/dev/NAM", "proj/dev/NAME2",
                                          "proj/prod/NAME" };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        assert_int_equal(unseal(vault, places[i], buf_slice(&sealed)), ERR_INVALID);
    assert_int_equal(unseal(other, "proj/dev/NAME", buf_slice(&sealed)), ERR_INVALID);
    assert_int_equal(unseal(vault, "proj/dev/NAME", buf_slice(&sealed)), OK);
    buf_finish(&sealed);
    vault_close(vault);
    vault_close(other);
}

static void any_changed_or_missing_character_is_detected(void **state)
{
    (void)state;
    static const char alphabet[] = "AZaz09-_=. ";
    struct vault *vault = open_vault(KEY_HEX);
    char sealed[sizeof(sealed_elsewhere)];
    memcpy(sealed, sealed_elsewhere, sizeof(sealed));
    for (size_t i = 0; i < sizeof(sealed) - 1; i++) {
        for (size_t j = 0; j < sizeof(alphabet) - 1; j++) {
            sealed[i] = alphabet[j];
            enum err expected = sealed[i] == sealed_elsewhere[i] ? OK : ERR_INVALID;
            assert_int_equal(unseal(vault, "proj/dev/NAME", slice_of(sealed)), expected);
        }
        sealed[i] = sealed_elsewhere[i];
        struct slice shorter = { sealed, i };
        assert_int_equal(unseal(vault, "proj/dev/NAME", shorter), ERR_INVALID);
    }
    vault_close(vault);
}

/* ---- keys ---- */

static void a_key_is_64_hex_digits_or_44_characters_of_base64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool right;
    } cases[] = {
        { KEY_HEX, true },
        { OTHER_HEX, true },
        { "FFFEFDFCFBFAF9F8F7F6F5F4F3F2F1F0EFEEEDECEBEAE9E8E7E6E5E4E3E2E1E0", true },
        { KEY_BASE64, true },
        { "//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=", true },
        { "__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA=", true },
        { "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", false },
        { "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh==", false },
        { "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9=", false }, /* not canonical */
        { "0001", false },
        { KEY_HEX "00", false },
        { "g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", false },
        { "correct horse battery staple", false },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct vault *vault = NULL;
        struct failure why = { 0 };
        struct slice text = slice_of(cases[i].text);
        assert_int_equal(vault_key_is_right(text), cases[i].right);
        assert_int_equal(vault_open(text, NULL, &vault, &why),
                         cases[i].right ? OK : ERR_INVALID);
        assert_null(strstr(why.text, cases[i].text)); /* a wrong key may be nearly right */
        vault_close(vault);
    }
}

static void hex_and_base64_spell_the_same_key(void **state)
{
    (void)state;
    struct vault *one = open_vault(OTHER_HEX);
    struct vault *two = open_vault("//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=");
    struct buf sealed = seal(one, "here", SLICE("value"));
    assert_int_equal(unseal(two, "here", buf_slice(&sealed)), OK);
    buf_finish(&sealed);
    vault_close(one);
    vault_close(two);
}

/* ---- files ---- */

struct folder {
    char path[64];
    char key[96];
};

static int make_folder(void **state)
{
    struct folder *folder = mem_new(struct folder);
    snprintf(folder->path, sizeof(folder->path), "/tmp/runcast-vault-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->key, sizeof(folder->key), "%s/encryption.key", folder->path);
    *state = folder;
    return 0;
}

static int remove_folder(void **state)
{
    struct folder *folder = *state;
    char beside[128];
    glob_t kept;
    snprintf(beside, sizeof(beside), "%s.????????", folder->key);
    if (glob(beside, 0, NULL, &kept) == 0) {
        for (size_t i = 0; i < kept.gl_pathc; i++)
            unlink(kept.gl_pathv[i]);
        globfree(&kept);
    }
    snprintf(beside, sizeof(beside), "%s.new", folder->key);
    unlink(folder->key);
    unlink(beside);
    snprintf(beside, sizeof(beside), "%s.next", folder->key);
    unlink(beside);
    assert_int_equal(rmdir(folder->path), 0); /* no other file was left */
    free(folder);
    return 0;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void the_first_start_makes_a_key_file_that_the_second_one_reads(void **state)
{
    struct folder *folder = *state;
    struct vault *first = NULL, *second = NULL;
    struct failure why;
    struct stat stat_;
    assert_int_equal(vault_open((struct slice){ 0 }, folder->key, &first, &why), OK);
    assert_int_not_equal(access(folder->key, F_OK),
                         0); /* not written before a key is needed */
    assert_int_equal(vault_settle(first, &why), OK);
    assert_int_equal(stat(folder->key, &stat_), 0);
    assert_int_equal(stat_.st_mode & 0777, 0600);
    assert_int_equal(stat_.st_size, 65);

    struct buf sealed = seal(first, "here", SLICE("value"));
    assert_int_equal(vault_open(SLICE(""), folder->key, &second, &why), OK);
    assert_int_equal(unseal(second, "here", buf_slice(&sealed)), OK);
    buf_finish(&sealed);
    vault_close(first);
    vault_close(second);
}

static void key_file_accessible_to_others_is_rejected(void **state)
{
    struct folder *folder = *state;
    static const mode_t modes[] = { 0640, 0604, 0660, 0644, 0620, 0602 };
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        struct vault *vault = NULL;
        struct failure why;
        write_file(folder->key, KEY_HEX "\n", modes[i]);
        assert_int_equal(vault_open((struct slice){ 0 }, folder->key, &vault, &why),
                         ERR_INVALID);
        assert_non_null(strstr(why.text, "chmod 600"));
        assert_null(vault);
    }
}

static void a_damaged_key_file_is_refused_and_never_replaced(void **state)
{
    struct folder *folder = *state;
    static const char *const contents[] = { "", "\n", "0001\n", KEY_HEX "\n" KEY_HEX "\n",
                                            "not a key\n" };
    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        struct vault *vault = NULL;
        struct failure why;
        struct stat stat_;
        write_file(folder->key, contents[i], 0600);
        assert_int_equal(vault_open((struct slice){ 0 }, folder->key, &vault, &why),
                         ERR_INVALID);
        assert_non_null(strstr(why.text, folder->key));
        assert_null(strstr(why.text, "000102"));
        assert_int_equal(stat(folder->key, &stat_), 0);
        assert_int_equal((size_t)stat_.st_size, strlen(contents[i]));
    }
}

static void a_key_file_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    struct vault *vault = NULL;
    struct failure why;
    assert_int_equal(vault_open((struct slice){ 0 }, "/nowhere/at/all.key", &vault, &why),
                     OK);
    assert_int_equal(vault_settle(vault, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "/nowhere/at/all.key"));
    vault_close(vault);
}

static void failed_write_leaves_no_copy_of_the_key(void **state)
{
    struct folder *folder = *state;
    unsigned char key[KEY_LEN] = { 1 };
    char written[128];
    struct failure why;
    snprintf(written, sizeof(written), "%s.new", folder->key);
    assert_int_equal(mkdir(folder->key, 0700), 0); /* no file can be renamed to it */
    assert_int_equal(key_file_write(folder->key, key, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, strerror(EISDIR)));
    assert_int_not_equal(access(written, F_OK), 0);
    assert_int_equal(rmdir(folder->key), 0);
}

static void a_secret_file_is_one_line(void **state)
{
    struct folder *folder = *state;
    char longest[4200];
    memset(longest, 'x', sizeof(longest));
    longest[4097] = '\0';
    const struct {
        const char *content, *secret;
    } cases[] = {
        { "secret", "secret" },
        { "secret\n", "secret" },
        { " \tsecret \r\n\n", "secret" },
        { "two words", "two words" },
        { "a\nb", NULL },
        { "", NULL },
        { " \n", NULL },
        { longest, NULL },
        { longest + 1, longest + 1 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *secret = NULL;
        struct failure why;
        write_file(folder->key, cases[i].content, 0444);
        enum err err = secret_file_read(folder->key, SECRET_FILE_MOUNTED, &secret, &why);
        assert_int_equal(err, cases[i].secret ? OK : ERR_INVALID);
        if (cases[i].secret)
            assert_string_equal(secret, cases[i].secret);
        secret_forget(secret);
    }
    char *secret = NULL;
    struct failure why;
    assert_int_equal(secret_file_read(folder->path, SECRET_FILE_MOUNTED, &secret, &why),
                     ERR_INVALID);
    assert_non_null(strstr(why.text, "not a regular file"));
}

static void the_hash_is_sha_256(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hash;
    } cases[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        unsigned char hash[HASH_LEN];
        char text[2 * HASH_LEN + 1];
        vault_hash(slice_of(cases[i].text), hash);
        text_to_hex(hash, HASH_LEN, text);
        assert_string_equal(text, cases[i].hash);
    }
}

/* ---- rotation ---- */

/* Opens a vault on its first start, with the key that it drew. */
static struct vault *open_file(const char *path)
{
    struct vault *vault = NULL;
    struct failure why = { 0 };
    bool first = access(path, F_OK) != 0;
    enum err err = vault_open((struct slice){ 0 }, path, &vault, &why);
    if (!err && first)
        err = vault_settle(vault, &why);
    if (err)
        fail_msg("%s", why.text);
    return vault;
}

static struct buf seal_with_next(const struct vault *vault, struct slice plain)
{
    struct buf sealed = { 0 };
    vault_seal_with_next(vault, SLICE("here"), plain, &sealed);
    return sealed;
}

/* For each point at which a rotation may be cut short: which text the next start opens. */
static void interrupted_rotation_is_settled_by_the_sealed_values(void **state)
{
    struct folder *folder = *state;
    enum { BEFORE_THE_COMMIT, AFTER_THE_COMMIT, CUTS };
    for (int cut = 0; cut < CUTS; cut++) {
        char next[300], kept[KEY_ID_TEXT_MAX], old_id[KEY_ID_TEXT_MAX];
        struct failure why = { 0 };
        struct vault *vault = open_file(folder->key);
        struct buf old = seal(vault, "here", SLICE("x"));
        vault_key_id(vault, old_id);
        assert_int_equal(vault_rotation_begin(vault, (struct slice){ 0 }, &why), OK);
        assert_int_equal(vault_rotation_save(vault, &why), OK);
        struct buf new = seal_with_next(vault, SLICE("x"));
        assert_true(vault_is_sealed_with_next(vault, buf_slice(&new)));
        assert_false(vault_is_sealed_with_next(vault, buf_slice(&old)));
        vault_close(vault);

        vault = open_file(folder->key);
        const struct buf *stored = cut == AFTER_THE_COMMIT ? &new : &old;
        assert_int_equal(unseal(vault, "here", buf_slice(stored)), OK);
        assert_int_equal(vault_settle(vault, &why), OK);
        vault_key_id(vault, kept);
        assert_int_equal(strcmp(kept, old_id) == 0, cut == BEFORE_THE_COMMIT);
        vault_close(vault);

        snprintf(next, sizeof(next), "%s.next", folder->key);
        assert_int_not_equal(access(next, F_OK), 0);
        vault = open_file(folder->key); /* a second start changes nothing */
        assert_int_equal(unseal(vault, "here", buf_slice(stored)), OK);
        assert_int_equal(unseal(vault, "here", buf_slice(stored == &old ? &new : &old)),
                         ERR_INVALID);
        vault_close(vault);
        buf_finish(&old);
        buf_finish(&new);
    }
}

static void database_with_values_of_two_keys_is_rejected(void **state)
{
    struct folder *folder = *state;
    struct failure why = { 0 };
    struct vault *vault = open_file(folder->key);
    struct buf old = seal(vault, "here", SLICE("x"));
    assert_int_equal(vault_rotation_begin(vault, (struct slice){ 0 }, &why), OK);
    assert_int_equal(vault_rotation_save(vault, &why), OK);
    struct buf new = seal_with_next(vault, SLICE("x"));
    vault_close(vault);
    vault = open_file(folder->key);
    assert_int_equal(unseal(vault, "here", buf_slice(&old)), OK);
    assert_int_equal(unseal(vault, "here", buf_slice(&new)), OK);
    assert_int_equal(vault_settle(vault, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "restore a backup"));
    vault_close(vault);
    buf_finish(&old);
    buf_finish(&new);
}

static void successful_rotation_leaves_one_key(void **state)
{
    struct folder *folder = *state;
    struct failure why = { 0 };
    struct vault *vault = open_file(folder->key);
    struct buf old = seal(vault, "here", SLICE("x"));
    assert_int_equal(vault_rotation_begin(vault, SLICE(OTHER_HEX), &why), OK);
    assert_int_equal(vault_rotation_begin(vault, SLICE(KEY_HEX), &why), ERR_CONFLICT);
    assert_int_equal(vault_rotation_save(vault, &why), OK);
    assert_int_equal(vault_rotation_place(vault, true, &why), OK);
    vault_rotation_end(vault, true);
    struct buf new = seal(vault, "here", SLICE("x"));
    assert_int_equal(unseal(vault, "here", buf_slice(&old)), ERR_INVALID);
    vault_close(vault);

    vault = open_vault(OTHER_HEX);
    assert_int_equal(unseal(vault, "here", buf_slice(&new)), OK);
    vault_close(vault);
    vault = open_file(folder->key);
    assert_int_equal(unseal(vault, "here", buf_slice(&new)), OK);
    vault_close(vault);
    buf_finish(&old);
    buf_finish(&new);
}

static void canceled_rotation_leaves_the_old_key(void **state)
{
    struct folder *folder = *state;
    struct failure why = { 0 };
    struct vault *vault = open_file(folder->key);
    struct buf old = seal(vault, "here", SLICE("x"));
    assert_int_equal(vault_rotation_begin(vault, (struct slice){ 0 }, &why), OK);
    assert_int_equal(vault_rotation_save(vault, &why), OK);
    assert_int_equal(vault_rotation_place(vault, false, &why), OK);
    vault_rotation_end(vault, false);
    assert_int_equal(unseal(vault, "here", buf_slice(&old)), OK);
    assert_int_equal(vault_rotation_begin(vault, (struct slice){ 0 }, &why), OK);
    vault_close(vault);
    buf_finish(&old);
}

static void a_key_given_as_text_is_rotated_to_one_given_as_text(void **state)
{
    (void)state;
    struct failure why = { 0 };
    struct vault *vault = open_vault(KEY_HEX);
    assert_int_equal(vault_rotation_begin(vault, (struct slice){ 0 }, &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "RUNCAST_NEXT_ENCRYPTION_KEY"));
    assert_int_equal(vault_rotation_begin(vault, SLICE("nonsense"), &why), ERR_INVALID);
    assert_int_equal(vault_rotation_begin(vault, SLICE(KEY_HEX), &why), ERR_INVALID);
    assert_non_null(strstr(why.text, "already in use"));
    assert_int_equal(vault_hold(vault), VAULT_HELD); /* no rotation was begun */
    vault_release(vault);
    assert_int_equal(vault_rotation_begin(vault, SLICE(OTHER_HEX), &why), OK);
    struct buf new = seal_with_next(vault, SLICE("x"));
    vault_close(vault);

    vault = open_vault(KEY_HEX); /* restarted with both keys */
    assert_int_equal(vault_offer(vault, SLICE(OTHER_HEX), &why), OK);
    assert_int_equal(unseal(vault, "here", buf_slice(&new)), OK);
    assert_int_equal(vault_settle(vault, &why), OK);
    assert_int_equal(unseal(vault, "here", buf_slice(&new)), OK);
    vault_close(vault);
    buf_finish(&new);
}

/* A gateway that follows opens what the leader has sealed with the next key, before it leads
 * itself. */
static void rotation_of_another_process_is_followed(void **state)
{
    (void)state;
    char ids[VAULT_KEYS][KEY_ID_TEXT_MAX], id[KEY_ID_TEXT_MAX];
    struct failure why = { 0 };
    struct vault *vault = open_vault(KEY_HEX), *leader = open_vault(OTHER_HEX);
    struct buf old = seal(vault, "here", SLICE("x")),
               new = seal(leader, "here", SLICE("x"));
    assert_int_equal(vault_key_ids(vault, ids), 1);
    assert_int_equal(vault_offer(vault, SLICE(OTHER_HEX), &why), OK);
    assert_int_equal(vault_key_ids(vault, ids), 2);
    assert_int_equal(unseal(vault, "here", buf_slice(&old)), OK);
    vault_rotation_follow(vault, buf_slice(&old)); /* nothing was rotated yet */
    assert_int_equal(vault_key_ids(vault, ids), 2);

    vault_rotation_follow(vault, buf_slice(&new));
    vault_key_id(vault, id);
    assert_string_equal(id, ids[1]);
    assert_int_equal(vault_key_ids(vault, ids), 1);
    assert_int_equal(unseal(vault, "here", buf_slice(&old)), ERR_INVALID);
    assert_int_equal(vault_settle(vault, &why), OK);
    vault_close(vault);
    vault_close(leader);
    buf_finish(&old);
    buf_finish(&new);
}

static void error_names_the_key_that_sealed_the_value(void **state)
{
    (void)state;
    char id[KEY_ID_TEXT_MAX], other_id[KEY_ID_TEXT_MAX];
    struct failure why = { 0 };
    struct vault *vault = open_vault(KEY_HEX), *other = open_vault(OTHER_HEX);
    struct buf sealed = seal(vault, "here", SLICE("x"));
    vault_key_id(vault, id);
    vault_key_id(other, other_id);
    assert_string_not_equal(id, other_id);
    assert_int_equal(vault_explain(other, buf_slice(&sealed), "it", &why), ERR_INVALID);
    assert_non_null(strstr(why.text, id));
    assert_non_null(strstr(why.text, other_id));
    assert_non_null(strstr(why.text, "set the right one as RUNCAST_ENCRYPTION_KEY"));
    vault_explain(vault, buf_slice(&sealed), "it", &why);
    assert_non_null(strstr(why.text, "restore a backup"));
    vault_explain(other, slice_of(sealed_elsewhere), "it", &why);
    assert_non_null(strstr(why.text, "sealed with another encryption key"));
    vault_close(vault);
    vault_close(other);
    buf_finish(&sealed);
}

struct called {
    struct vault_waiter waiter;
    unsigned times;
};

static void count_call(struct vault_waiter *waiter)
{
    container_of(waiter, struct called, waiter)->times++;
}

static void sealing_and_rotation_wait_for_each_other(void **state)
{
    (void)state;
    struct failure why = { 0 };
    struct vault *vault = open_vault(KEY_HEX);
    struct called called = { .waiter.fn = count_call };
    list_init(&called.waiter.link);
    assert_int_equal(vault_hold(vault), VAULT_HELD);
    assert_int_equal(vault_rotation_begin(vault, SLICE(OTHER_HEX), &why), OK);
    assert_false(vault_is_free(vault));
    assert_int_equal(vault_hold(vault), VAULT_WAIT);
    vault_wait(vault, &called.waiter);
    vault_wait(vault, &called.waiter);
    vault_release(vault);
    assert_true(vault_is_free(vault));
    assert_int_equal(called.times, 0);
    vault_rotation_end(vault, true);
    assert_int_equal(called.times, 1);
    assert_int_equal(vault_hold(vault), VAULT_HELD);
    vault_release(vault);

    assert_int_equal(vault_rotation_begin(vault, SLICE(KEY_HEX), &why), OK);
    vault_wait(vault, &called.waiter);
    vault_rotation_give_up(vault);
    assert_int_equal(called.times, 2);
    assert_int_equal(vault_hold(vault), VAULT_SHUT);
    vault_close(vault);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sealed_value_is_opened_again),
        cmocka_unit_test(a_value_sealed_by_another_program_opens),
        cmocka_unit_test(sealing_twice_gives_different_texts_that_hide_the_value),
        cmocka_unit_test(value_does_not_open_with_another_key_or_place),
        cmocka_unit_test(any_changed_or_missing_character_is_detected),
        cmocka_unit_test(a_key_is_64_hex_digits_or_44_characters_of_base64),
        cmocka_unit_test(hex_and_base64_spell_the_same_key),
        WITH_FOLDER(the_first_start_makes_a_key_file_that_the_second_one_reads),
        WITH_FOLDER(key_file_accessible_to_others_is_rejected),
        WITH_FOLDER(a_damaged_key_file_is_refused_and_never_replaced),
        cmocka_unit_test(a_key_file_that_cannot_be_made_is_an_error),
        cmocka_unit_test_setup_teardown(failed_write_leaves_no_copy_of_the_key, make_folder,
                                        remove_folder),
        WITH_FOLDER(a_secret_file_is_one_line),
        cmocka_unit_test(the_hash_is_sha_256),
        WITH_FOLDER(interrupted_rotation_is_settled_by_the_sealed_values),
        WITH_FOLDER(database_with_values_of_two_keys_is_rejected),
        WITH_FOLDER(successful_rotation_leaves_one_key),
        WITH_FOLDER(canceled_rotation_leaves_the_old_key),
        cmocka_unit_test(a_key_given_as_text_is_rotated_to_one_given_as_text),
        cmocka_unit_test(rotation_of_another_process_is_followed),
        cmocka_unit_test(error_names_the_key_that_sealed_the_value),
        cmocka_unit_test(sealing_and_rotation_wait_for_each_other),
    };
    return cmocka_run_group_tests_name("vault", tests, NULL, NULL);
}
