/* key_file.c - reads and writes encryption keys.
 *
 * Losing part of a key would lose everything sealed with it, so nothing is written in
 * place. */
#include "base/vault/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/vault/secret.h"
#include "base/vault/secret_file.h"

enum { KEY_HEX_LEN = 2 * KEY_LEN, KEY_BASE64_LEN = 44 };

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_hex(struct slice text, unsigned char key[KEY_LEN])
{
    if (text.len != KEY_HEX_LEN)
        return false;
    for (size_t i = 0; i < KEY_LEN; i++) {
        int high = hex_value(text.ptr[2 * i]), low = hex_value(text.ptr[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        key[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* Accepts both alphabets, with the one padding character that 32 bytes have. */
static bool read_base64(struct slice text, unsigned char key[KEY_LEN])
{
    char unpadded[KEY_BASE64_LEN];
    size_t len = 0;
    if (text.len != KEY_BASE64_LEN || text.ptr[KEY_BASE64_LEN - 1] != '=')
        return false;
    for (size_t i = 0; i < KEY_BASE64_LEN - 1; i++) {
        char c = text.ptr[i];
        unpadded[i] = c == '+' ? '-' : c == '/' ? '_' : c;
    }
    bool read = text_from_base64url((struct slice){ unpadded, KEY_BASE64_LEN - 1 }, key,
                                    &len) == OK;
    OPENSSL_cleanse(unpadded, sizeof(unpadded));
    return read && len == KEY_LEN;
}

bool key_read(struct slice text, unsigned char key[KEY_LEN])
{
    return read_hex(text, key) || read_base64(text, key);
}

static bool write_all(int file, const char *text, size_t len)
{
    while (len) {
        ssize_t written = write(file, text, len);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        len -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = slash ? mem_text((struct slice){ path, (size_t)(slash - path) + 1 })
                       : mem_text(SLICE("."));
    int folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = folder >= 0 && fsync(folder) == 0;
    if (folder >= 0)
        close(folder);
    free(name);
    return synced;
}

enum err key_file_write(const char *path, const unsigned char key[KEY_LEN],
                        struct failure *why)
{
    char text[KEY_HEX_LEN + 2], temporary[PATH_MAX];
    int length = snprintf(temporary, sizeof(temporary), "%s.new", path);
    if (length < 0 || (size_t)length >= sizeof(temporary))
        return explain(why, ERR_INVALID, "%s: path too long", path);
    text_to_hex(key, KEY_LEN, text);
    text[KEY_HEX_LEN] = '\n';

    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool made = file >= 0 && fchmod(file, 0600) == 0 &&
                write_all(file, text, KEY_HEX_LEN + 1) && fsync(file) == 0;
    int reason = errno;
    if (file >= 0 && close(file) && made) {
        made = false;
        reason = errno;
    }
    if (made && (rename(temporary, path) || !sync_folder_of(path))) {
        made = false;
        reason = errno;
    }
    if (!made && file >= 0)
        unlink(temporary); /* it may hold the key */
    OPENSSL_cleanse(text, sizeof(text));
    if (made)
        return OK;
    return explain(why, ERR_INVALID, "%s: cannot write the encryption key: %s", path,
                   strerror(reason));
}

enum err key_parse(struct slice text, const char *source, unsigned char key[KEY_LEN],
                   struct failure *why)
{
    if (key_read(text, key))
        return OK;
    return explain(why, ERR_INVALID,
                   "%s: the encryption key is not 64 hex digits or 44 characters of base64",
                   source);
}

enum err key_file_read(const char *path, unsigned char key[KEY_LEN], struct failure *why)
{
    char *text;
    if (access(path, F_OK) && errno == ENOENT)
        return explain(why, ERR_NOT_FOUND, "%s: file not found", path);
    enum err err = secret_file_read(path, SECRET_FILE_PRIVATE, &text, why);
    if (err)
        return err;
    err = key_parse(slice_of(text), path, key, why);
    secret_forget(text);
    return err;
}

static enum err not_done(const char *path, const char *what, struct failure *why)
{
    return explain(why, ERR_INVALID, "%s: cannot %s the encryption key: %s", path, what,
                   strerror(errno));
}

enum err key_file_move(const char *from, const char *to, struct failure *why)
{
    if (rename(from, to) == 0 && sync_folder_of(to))
        return OK;
    return not_done(to, "replace", why);
}

enum err key_file_remove(const char *path, struct failure *why)
{
    if (unlink(path) && errno == ENOENT)
        return OK;
    return access(path, F_OK) && sync_folder_of(path) ? OK : not_done(path, "remove", why);
}
