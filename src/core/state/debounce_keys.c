/* debounce_keys.c - the table of debounce keys. */
#include "core/state/debounce_keys.h"

#include "base/mem.h"

struct debounce_key {
    char run_id[RUN_ID_MAX];  /* the delayed run that has the key; "": none */
    struct trigger_op *maker; /* creates a run for the key; NULL: none */
    struct trigger *item;     /* the maker's item for that run */
    struct list line;         // trigger_op::wants_key
    size_t text_len;
    char text[]; /* the environment's number, the task, a zero, the mark */
};

static struct slice key_text(const void *value)
{
    const struct debounce_key *key = value;
    return (struct slice){ key->text, key->text_len };
}

void debounce_keys_init(struct engine *engine)
{
    table_init(&engine->debounce_keys, key_text);
}

void debounce_keys_finish(struct engine *engine)
{
    size_t at = 0;
    for (struct debounce_key *key; (key = table_next(&engine->debounce_keys, &at));)
        free(key);
    table_finish(&engine->debounce_keys);
}

/* ---- one key ---- */

static void make_text(const struct environment *env, const struct run *run,
                      struct buf *text)
{
    buf_add(text, (struct slice){ (const char *)&env->number, sizeof(env->number) });
    buf_add(text, bytes_slice(run->task));
    buf_add_char(text, '\0');
    buf_add(text, bytes_slice(run_rare(run)->waits));
}

/* Returns the key that the mark of the run names; NULL if it is not in the table. */
static struct debounce_key *find_key(struct engine *engine, const struct environment *env,
                                     const struct run *run, bool add)
{
    struct buf text = { 0 };
    make_text(env, run, &text);
    struct debounce_key *key = table_find(&engine->debounce_keys, buf_slice(&text));
    if (!key && add) {
        key = mem_new_flex(struct debounce_key, text.len);
        key->text_len = text.len;
        memcpy(key->text, text.ptr, text.len);
        list_init(&key->line);
        table_insert(&engine->debounce_keys, key);
    }
    buf_finish(&text);
    return key;
}

static void drop_unused(struct engine *engine, struct debounce_key *key)
{
    if (key->run_id[0] || key->maker || !list_empty(&key->line))
        return;
    table_remove(&engine->debounce_keys, key_text(key));
    free(key);
}

/* Returns true if the run that has the key can still be pushed, judging by its mark. */
static bool has_run(const struct environment *env, const struct debounce_key *key,
                    struct slice mark)
{
    const struct tracked *run = environment_find(env, slice_of(key->run_id));
    return run && slice_equal(debounce_mark_of(&run->run), mark);
}

void debounce_keys_note(struct engine *engine, const struct tracked *tracked)
{
    const struct run *run = &tracked->run;
    struct slice mark = debounce_mark_of(run);
    if (!debounce_is_mark(bytes_slice(run_rare(run)->waits)))
        return;
    struct debounce_key *key = find_key(engine, tracked->env, run, mark.ptr != NULL);
    if (!key)
        return;
    if (mark.ptr && !has_run(tracked->env, key, mark))
        memcpy(key->run_id, run->id, sizeof(key->run_id));
    else if (!mark.ptr && !strcmp(key->run_id, run->id))
        key->run_id[0] = '\0';
    drop_unused(engine, key);
}

/* ---- operations ---- */

static bool wants_key(const struct trigger *item)
{
    return item->debounce.delay_ms && !item->cached;
}

/* Appends the operation to the line of a key for which another one is creating a run.
 * Returns false if it need not wait for any of its keys. */
static bool must_wait(struct trigger_op *op)
{
    for (size_t i = 0; i < op->count; i++) {
        if (!wants_key(&op->items[i]))
            continue;
        struct debounce_key *key = find_key(op->engine, op->env, &op->items[i].run, false);
        if (key && key->maker) {
            list_append(&key->line, &op->wants_key);
            return true;
        }
    }
    return false;
}

static void take_key(struct trigger_op *op, struct trigger *item)
{
    struct debounce_key *key = find_key(op->engine, op->env, &item->run, true);
    if (key->maker) {
        item->leader = key->item;
        return;
    }
    if (has_run(op->env, key, bytes_slice(run_rare(&item->run)->waits))) {
        memcpy(item->pushes, key->run_id, sizeof(item->pushes));
        return;
    }
    key->run_id[0] = '\0';
    key->maker = op;
    key->item = item;
}

bool debounce_keys_take(struct trigger_op *op)
{
    debounce_keys_give(op);
    if (must_wait(op))
        return false;
    for (size_t i = 0; i < op->count; i++)
        if (wants_key(&op->items[i]))
            take_key(op, &op->items[i]);
    return true;
}

void debounce_keys_replace(struct trigger_op *op, struct trigger *item)
{
    struct debounce_key *key = find_key(op->engine, op->env, &item->run, true);
    key->maker = op;
    key->item = item;
}

/* Retries the operations in the line: the first may create the next run. */
static void serve_line(struct engine *engine, struct debounce_key *key)
{
    struct list line;
    list_init(&line);
    list_move_all(&line, &key->line);
    drop_unused(engine, key);
    while (!list_empty(&line)) {
        struct trigger_op *next =
            container_of(list_take(&line), struct trigger_op, wants_key);
        next->retry(next);
    }
}

void debounce_keys_give(struct trigger_op *op)
{
    for (size_t i = 0; i < op->count; i++) {
        struct trigger *item = &op->items[i];
        struct debounce_key *key = item->debounce.delay_ms
                                       ? find_key(op->engine, op->env, &item->run, false)
                                       : NULL;
        item->leader = NULL;
        item->pushes[0] = '\0';
        item->replaces = false;
        if (!key || key->maker != op)
            continue;
        key->maker = NULL;
        key->item = NULL;
        serve_line(op->engine, key);
    }
}
