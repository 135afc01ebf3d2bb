/* singletons.c - the index of the keys of singleton queues.
 *
 *   environment ──► queue ──► key ──► runs that have begun, by id
 *                     │        │  └─► runs that have not, by id
 *                     │        └────► the trigger that creates one; others wait in line
 *                     └─────────────► while it is indexed: all triggers wait in line */
#include "core/state/singletons.h"

#include "base/mem.h"

enum { INDEXED_AT_ONCE = 256, FREED_AT_ONCE = 256 };

struct key_holder {
    struct ranked place; /* in singleton_key::runs */
    char id[RUN_ID_MAX];
};

struct singleton_key {
    struct ranking runs[2];   /* of struct key_holder: not begun, begun */
    struct trigger_op *maker; /* creates a run with the key; NULL: none */
    struct trigger *item;     /* the maker's last item for the key */
    struct list line;         // trigger_op::wants_key
    size_t text_len;
    char text[];
};

struct singleton_queue {
    struct environment *env;
    enum singleton strategy;
    struct table keys; /* of struct singleton_key, by concurrencyKey */
    bool is_indexed;   /* keys have all unfinished runs of the queue */
    struct flusher indexer;
    uint64_t at, until; /* revs, while it is indexed */
    struct list line;   // trigger_op::wants_key
    size_t name_len;
    char name[];
};

/* The keys of a queue that is indexed no more. They are freed in time slices. */
struct singleton_rest {
    struct environment *env;
    struct table keys;
    size_t at;                 /* in keys */
    struct singleton_key *key; /* the one to be freed next; NULL: the next in keys */
    struct flusher freer;
    struct list link; // engine_share::singleton_rests
};

static struct slice present(const struct bytes *text)
{
    return text ? bytes_slice(text) : SLICE("");
}

/* ---- keys ---- */

static struct slice key_text(const void *value)
{
    const struct singleton_key *key = value;
    return (struct slice){ key->text, key->text_len };
}

static struct slice holder_id(const struct ranked *place)
{
    return slice_of(container_of(place, const struct key_holder, place)->id);
}

static struct singleton_key *find_key(const struct singleton_queue *queue,
                                      const struct run *run)
{
    return table_find(&queue->keys, present(run_rare(run)->concurrency_key));
}

static struct singleton_key *key_of(struct singleton_queue *queue, const struct run *run)
{
    struct slice text = present(run_rare(run)->concurrency_key);
    struct singleton_key *key = table_find(&queue->keys, text);
    if (key)
        return key;
    key = mem_new_flex(struct singleton_key, text.len);
    key->text_len = text.len;
    memcpy(key->text, text.ptr, text.len);
    ranking_init(&key->runs[false], holder_id);
    ranking_init(&key->runs[true], holder_id);
    list_init(&key->line);
    table_insert(&queue->keys, key);
    return key;
}

static void drop_unused(struct singleton_queue *queue, struct singleton_key *key)
{
    if (key->runs[false].root || key->runs[true].root || key->maker ||
        !list_empty(&key->line))
        return;
    table_remove(&queue->keys, key_text(key));
    free(key);
}

/* ---- holders ---- */

static bool has_begun(const struct run *run)
{
    switch (run->status) {
    case RUN_DELAYED:
    case RUN_PENDING_VERSION:
    case RUN_QUEUED: return run->attempt > 0;
    default: return true;
    }
}

static struct key_holder *holder_at(const struct ranking *runs, uint32_t place)
{
    struct ranked *found = ranking_at(runs, place);
    return found ? container_of(found, struct key_holder, place) : NULL;
}

static struct key_holder *find_holder(const struct ranking *runs, const char *id)
{
    struct key_holder *found = holder_at(runs, ranking_place(runs, slice_of(id)));
    return found && !strcmp(found->id, id) ? found : NULL;
}

/* Returns the run that holds the key; NULL: none. */
static const char *choose(const struct singleton_key *key, enum singleton strategy)
{
    bool begun_first = strategy == SINGLETON_SKIP;
    const struct key_holder *found = holder_at(&key->runs[begun_first], 0);
    found = found ? found : holder_at(&key->runs[!begun_first], 0);
    return found ? found->id : NULL;
}

static void note_in(struct singleton_queue *queue, const struct run *run)
{
    bool is_holder = !run_is_final(run), begun = has_begun(run);
    struct singleton_key *key = is_holder ? key_of(queue, run) : find_key(queue, run);
    if (!key || (is_holder && find_holder(&key->runs[begun], run->id)))
        return;
    for (int i = 0; i < 2; i++) {
        struct key_holder *was = find_holder(&key->runs[i], run->id);
        if (was)
            ranking_remove(&key->runs[i], &was->place);
        free(was);
    }
    if (is_holder) {
        struct key_holder *holder = mem_new(struct key_holder);
        memcpy(holder->id, run->id, sizeof(holder->id));
        ranking_insert(&key->runs[begun], &holder->place);
    }
    drop_unused(queue, key);
}

/* ---- queues ---- */

static struct slice queue_name(const void *value)
{
    const struct singleton_queue *queue = value;
    return (struct slice){ queue->name, queue->name_len };
}

/* Returns NULL if the runs of the queue are not indexed. */
static struct singleton_queue *find_queue(const struct environment *env,
                                          const struct run *run)
{
    const struct table *queues = &engine_share_of(env)->singletons;
    return queues->count ? table_find(queues, bytes_slice(run->queue)) : NULL;
}

void singletons_note(const struct tracked *run)
{
    struct singleton_queue *queue = find_queue(run->env, &run->run);
    if (queue)
        note_in(queue, &run->run);
}

static void retry_all(struct list *line)
{
    while (!list_empty(line)) {
        struct trigger_op *next =
            container_of(list_take(line), struct trigger_op, wants_key);
        next->retry(next);
    }
}

static void end_indexing(struct singleton_queue *queue)
{
    if (queue->is_indexed)
        return;
    queue->is_indexed = true;
    loop_remove_flusher(&queue->indexer);
    environment_release(queue->env);
}

/* Runs that change meanwhile are noted by their changes. */
static bool index_some(struct flusher *flusher)
{
    struct singleton_queue *queue = container_of(flusher, struct singleton_queue, indexer);
    const struct order *all = &queue->env->hub.all.order;
    struct timeslice timeslice = loop_timeslice(queue->env->loop);
    struct list line;
    for (uint32_t i = order_after(all, queue->at); i < all->count; i++) {
        struct place place = order_place(all, i);
        if (place.rev > queue->until)
            break;
        if (!timeslice_left_every(&timeslice, INDEXED_AT_ONCE))
            return true;
        queue->at = place.rev;
        if (place.run)
            singletons_note(place.run);
    }
    end_indexing(queue);
    list_init(&line);
    list_move_all(&line, &queue->line);
    retry_all(&line);
    return false;
}

/* At startup the settings are loaded before the runs. */
static void begin_indexing(struct singleton_queue *queue)
{
    struct environment *env = queue->env;
    queue->until = env->applied;
    queue->is_indexed = !env->hub.all.order.runs;
    if (queue->is_indexed)
        return;
    queue->indexer.fn = index_some;
    environment_hold(env);
    loop_add_flusher(env->loop, &queue->indexer);
    loop_wake(env->loop, &queue->indexer);
}

static struct singleton_queue *add_queue(struct environment *env, struct slice name)
{
    struct table *queues = &engine_share_of(env)->singletons;
    struct singleton_queue *queue = mem_new_flex(struct singleton_queue, name.len);
    queue->env = env;
    queue->name_len = name.len;
    memcpy(queue->name, name.ptr, name.len);
    table_init(&queue->keys, key_text);
    list_init(&queue->line);
    table_insert(queues, queue);
    begin_indexing(queue);
    return queue;
}

/* ---- the rest of a queue ---- */

/* Frees one more of those that hold the key; returns false if none did. */
static bool free_holder(struct singleton_key *key)
{
    for (int i = 0; i < 2; i++) {
        struct key_holder *holder = holder_at(&key->runs[i], 0);
        if (!holder)
            continue;
        ranking_remove(&key->runs[i], &holder->place);
        free(holder);
        return true;
    }
    return false;
}

/* Frees a holder or a key; returns false if nothing is left. Moves the operations that wait for
 * the key to a line. */
static bool free_next(struct singleton_rest *rest, struct list *line)
{
    if (!rest->key)
        rest->key = table_next(&rest->keys, &rest->at);
    if (!rest->key || free_holder(rest->key))
        return rest->key;
    list_move_all(line, &rest->key->line);
    free(rest->key);
    rest->key = NULL;
    return true;
}

/* Requires that all is freed. */
static void end_rest(struct singleton_rest *rest)
{
    loop_remove_flusher(&rest->freer);
    list_remove(&rest->link);
    table_finish(&rest->keys);
    environment_release(rest->env);
    free(rest);
}

static bool free_some(struct flusher *flusher)
{
    struct singleton_rest *rest = container_of(flusher, struct singleton_rest, freer);
    struct timeslice timeslice = loop_timeslice(rest->env->loop);
    struct list line;
    bool more = true;
    list_init(&line);
    while (more && timeslice_left_every(&timeslice, FREED_AT_ONCE))
        more = free_next(rest, &line);
    if (!more)
        end_rest(rest);
    retry_all(&line);
    return more;
}

/* Takes the keys. */
static void begin_rest(struct environment *env, const struct table *keys)
{
    struct singleton_rest *rest = mem_new(struct singleton_rest);
    rest->env = env;
    rest->keys = *keys;
    rest->freer.fn = free_some;
    environment_hold(env);
    list_append(&engine_share_of(env)->singleton_rests, &rest->link);
    loop_add_flusher(env->loop, &rest->freer);
    loop_wake(env->loop, &rest->freer);
}

/* ---- the end of a queue ---- */

/* Operations that wait for a key are retried when it is freed; the others move to a line. */
static void free_queue(struct singleton_queue *queue, struct list *line)
{
    list_move_all(line, &queue->line);
    begin_rest(queue->env, &queue->keys);
    end_indexing(queue);
    free(queue);
}

static void remove_queue(struct environment *env, struct singleton_queue *queue)
{
    struct list line;
    list_init(&line);
    table_remove(&engine_share_of(env)->singletons, queue_name(queue));
    free_queue(queue, &line);
    retry_all(&line);
}

void singletons_init(struct engine_share *share)
{
    table_init(&share->singletons, queue_name);
    list_init(&share->singleton_rests);
}

void singletons_finish(struct engine_share *share)
{
    size_t at = 0;
    struct table *queues = &share->singletons;
    struct list line;
    list_init(&line);
    for (struct singleton_queue *queue; (queue = table_next(queues, &at));)
        free_queue(queue, &line);
    table_finish(queues);
    while (!list_empty(&share->singleton_rests)) {
        struct singleton_rest *rest =
            container_of(share->singleton_rests.next, struct singleton_rest, link);
        while (free_next(rest, &line))
            continue;
        end_rest(rest);
    }
}

void engine_configure_queue(struct environment *env, struct slice name,
                            const struct queue_settings *settings)
{
    struct singleton_queue *queue = table_find(&engine_share_of(env)->singletons, name);
    queues_configure(&env->queues, name, settings);
    if (!queue && singleton_needs_holder(settings->singleton))
        queue = add_queue(env, name);
    if (!queue)
        return;
    queue->strategy = settings->singleton;
    if (!singleton_needs_holder(queue->strategy))
        remove_queue(env, queue);
}

/* ---- operations ---- */

enum err singletons_check(struct trigger_op *op)
{
    for (size_t i = 0; i < op->count; i++) {
        const struct trigger *item = &op->items[i];
        const struct singleton_queue *queue = find_queue(op->env, &item->run);
        if (queue && item->debounce.delay_ms)
            return explain(&op->why, ERR_INVALID,
                           "Validation error: debounce does not go with the singleton "
                           "strategy %s of the queue %.*s; use the strategy queue, or "
                           "another queue, at \"options.debounce\"",
                           singleton_word(queue->strategy),
                           SLICE_ARG(text_clip(queue_name(queue))));
    }
    return OK;
}

/* Returns true if one of the items needs a holder. */
static bool set_strategies(struct trigger_op *op)
{
    for (size_t i = 0; i < op->count; i++) {
        struct trigger *item = &op->items[i];
        const struct singleton_queue *queue = find_queue(op->env, &item->run);
        bool is_concerned = queue && !item->cached && !item->debounce.delay_ms;
        item->singleton = is_concerned ? queue->strategy : SINGLETON_NONE;
        op->is_singleton |= is_concerned;
    }
    return op->is_singleton;
}

/* Appends the operation to the line of a key that another one creates a run with, or of a
 * queue that is being indexed. Returns false if it need not wait. */
static bool must_wait(struct trigger_op *op)
{
    for (size_t i = 0; i < op->count; i++) {
        const struct trigger *item = &op->items[i];
        struct singleton_queue *queue =
            item->singleton ? find_queue(op->env, &item->run) : NULL;
        struct singleton_key *key = queue ? find_key(queue, &item->run) : NULL;
        if (queue && !queue->is_indexed) {
            list_append(&queue->line, &op->wants_key);
            return true;
        }
        if (key && key->maker) {
            list_append(&key->line, &op->wants_key);
            return true;
        }
    }
    return false;
}

static void take_key(struct trigger_op *op, struct trigger *item)
{
    struct singleton_key *key = key_of(find_queue(op->env, &item->run), &item->run);
    if (key->maker) {
        item->leader = key->item;
        if (item->singleton == SINGLETON_CANCEL)
            key->item = item;
        return;
    }
    const char *holder = choose(key, item->singleton);
    if (holder)
        memcpy(item->pushes, holder, sizeof(item->pushes));
    if (holder && item->singleton == SINGLETON_SKIP)
        return;
    key->maker = op;
    key->item = item;
}

bool singletons_take(struct trigger_op *op)
{
    singletons_give(op);
    if (!set_strategies(op))
        return true;
    if (must_wait(op))
        return false;
    for (size_t i = 0; i < op->count; i++)
        if (op->items[i].singleton)
            take_key(op, &op->items[i]);
    return true;
}

/* Retries operations in the line until one of them creates a run with the key. */
static void serve_line(struct singleton_queue *queue, struct singleton_key *key)
{
    while (!key->maker && !list_empty(&key->line)) {
        struct trigger_op *next =
            container_of(list_take(&key->line), struct trigger_op, wants_key);
        next->retry(next);
    }
    drop_unused(queue, key);
}

void singletons_give(struct trigger_op *op)
{
    for (size_t i = 0; op->is_singleton && i < op->count; i++) {
        struct trigger *item = &op->items[i];
        struct singleton_queue *queue =
            item->singleton ? find_queue(op->env, &item->run) : NULL;
        struct singleton_key *key = queue ? find_key(queue, &item->run) : NULL;
        if (item->singleton) {
            item->leader = NULL;
            item->pushes[0] = '\0';
            item->replaces = false;
        }
        item->singleton = SINGLETON_NONE;
        if (!key || key->maker != op)
            continue;
        key->maker = NULL;
        key->item = NULL;
        serve_line(queue, key);
    }
}

/* ---- the holder ---- */

bool singletons_hold(const struct environment *env, const struct trigger *item,
                     const struct run *now)
{
    const struct singleton_queue *queue = find_queue(env, &item->run);
    const struct singleton_key *key = queue ? find_key(queue, &item->run) : NULL;
    const char *holder = key ? choose(key, item->singleton) : NULL;
    const struct tracked *known = environment_find(env, slice_of(now->id));
    return holder && !strcmp(holder, now->id) && !run_is_final(now) &&
           has_begun(now) == has_begun(&known->run);
}
