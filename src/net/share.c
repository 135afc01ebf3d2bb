/* share.c - a table of the bytes in each memory quota, and how many users hold them. */
#include "net/share.h"

#include "base/mem.h"
#include "base/table.h"

struct share_key {
    const struct quota *quota;
    const struct bytes *bytes;
};

struct share {
    struct share_key key;
    size_t holders;
};

static struct table shares; /* of struct share */

static struct slice key_of(const void *value)
{
    const struct share *share = value;
    return (struct slice){ (const char *)&share->key, sizeof(share->key) };
}

static struct share *find(const struct quota *quota, const struct bytes *bytes)
{
    struct share wanted = { .key = { quota, bytes } };
    return shares.key ? table_find(&shares, key_of(&wanted)) : NULL;
}

void share_take(struct quota *quota, struct bytes *bytes)
{
    if (!quota || !bytes)
        return;
    struct share *share = find(quota, bytes);
    if (!share) {
        share = mem_new(struct share);
        share->key = (struct share_key){ quota, bytes };
        if (!shares.key)
            table_init(&shares, key_of);
        table_insert(&shares, share);
        quota_take(quota, bytes->len);
    }
    share->holders++;
    bytes_ref(bytes);
}

void share_give(struct quota *quota, struct bytes *bytes)
{
    if (!quota || !bytes)
        return;
    struct share *share = find(quota, bytes);
    assert(share && share->holders);
    if (!--share->holders) {
        table_remove(&shares, key_of(share));
        free(share);
        quota_release(quota, bytes->len);
    }
    if (!shares.count) {
        table_finish(&shares);
        shares = (struct table){ 0 };
    }
    bytes_unref(bytes);
}
