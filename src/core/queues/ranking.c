/* ranking.c - a treap: a search tree by key that is a heap by weight.
 *
 * The weight is the keyed hash of the key, so no client can choose keys that make the tree
 * deep. Its depth is about twice the logarithm of the number of values. */
#include "core/queues/ranking.h"

#include <assert.h>

#include "base/table.h"

static uint32_t count_of(const struct ranked *tree)
{
    return tree ? tree->count : 0;
}

static struct ranked *counted(struct ranked *tree)
{
    tree->count = 1 + count_of(tree->left) + count_of(tree->right);
    return tree;
}

/* Splits the tree: keys below the given one go to the left, the others to the right. */
static void split(const struct ranking *ranking, struct ranked *tree, struct slice key,
                  struct ranked **left, struct ranked **right)
{
    if (!tree) {
        *left = *right = NULL;
    } else if (slice_compare(ranking->key(tree), key) < 0) {
        split(ranking, tree->right, key, &tree->right, right);
        *left = counted(tree);
    } else {
        split(ranking, tree->left, key, left, &tree->left);
        *right = counted(tree);
    }
}

/* Merges two trees; all keys of the left one are below those of the right one. */
static struct ranked *merge(struct ranked *left, struct ranked *right)
{
    if (!left || !right)
        return left ? left : right;
    if (left->weight > right->weight) {
        left->right = merge(left->right, right);
        return counted(left);
    }
    right->left = merge(left, right->left);
    return counted(right);
}

void ranking_init(struct ranking *ranking, ranking_key_fn *key)
{
    *ranking = (struct ranking){ .key = key };
}

void ranking_insert(struct ranking *ranking, struct ranked *value)
{
    struct slice key = ranking->key(value);
    struct ranked *left, *right;

    *value = (struct ranked){ .count = 1, .weight = table_hash(key) };
    split(ranking, ranking->root, key, &left, &right);
    ranking->root = merge(merge(left, value), right);
}

void ranking_remove(struct ranking *ranking, struct ranked *value)
{
    struct slice key = ranking->key(value);
    struct ranked **place = &ranking->root;

    while (*place != value) {
        assert(*place);
        (*place)->count--;
        place = slice_compare(ranking->key(*place), key) < 0 ? &(*place)->right
                                                             : &(*place)->left;
    }
    *place = merge(value->left, value->right);
    *value = (struct ranked){ 0 };
}

struct ranked *ranking_at(const struct ranking *ranking, uint64_t place)
{
    struct ranked *tree = ranking->root;
    while (tree) {
        uint32_t left = count_of(tree->left);
        if (place == left)
            return tree;
        if (place < left) {
            tree = tree->left;
        } else {
            place -= left + 1;
            tree = tree->right;
        }
    }
    return NULL;
}

uint32_t ranking_count(const struct ranking *ranking)
{
    return count_of(ranking->root);
}

uint32_t ranking_place(const struct ranking *ranking, struct slice key)
{
    uint32_t place = 0;
    for (const struct ranked *tree = ranking->root; tree;) {
        if (slice_compare(ranking->key(tree), key) < 0) {
            place += count_of(tree->left) + 1;
            tree = tree->right;
        } else {
            tree = tree->left;
        }
    }
    return place;
}
