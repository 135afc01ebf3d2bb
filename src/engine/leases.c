/* leases.c - for each environment a ring of its newest leases, by the hash of the request:
 * one that leases a lot does not push out what others have to find again. */
#include "engine/leases.h"

#include "base/slots.h"
#include "model/run_end.h"

enum { LEASES_MAX = 512 };

struct ring {
    uint64_t requests[LEASES_MAX]; /* hashes; 0: none */
    char run_ids[LEASES_MAX][ID_MAX];
    unsigned next;
};

struct leases {
    struct slots rings; /* of struct ring, by number of the environment */
};

struct leases *leases_create(void)
{
    return mem_new(struct leases);
}

void leases_destroy(struct leases *leases)
{
    uint32_t at = 0;
    for (struct ring *ring; (ring = slots_next(&leases->rings, &at));)
        free(ring);
    slots_finish(&leases->rings);
    free(leases);
}

void leases_forget(struct leases *leases, uint32_t env)
{
    struct ring *ring = slots_get(&leases->rings, env);
    if (!ring)
        return;
    free(ring);
    *slots_at(&leases->rings, env) = NULL;
}

static struct ring *ring_of(struct leases *leases, uint32_t env)
{
    void **ring = slots_at(&leases->rings, env);
    if (!*ring)
        *ring = mem_new(struct ring);
    return *ring;
}

void leases_note(struct leases *leases, const struct tracked *tracked)
{
    const struct run *run = &tracked->run;
    if (run->execution != EXECUTION_PENDING_EXECUTING || !run->worker_request)
        return;
    struct ring *ring = ring_of(leases, tracked->env->number);
    unsigned at = ring->next++ % LEASES_MAX;
    ring->requests[at] = table_hash(bytes_slice(run->worker_request));
    snprintf(ring->run_ids[at], ID_MAX, "%s", run->id);
}

const struct tracked *leases_find(const struct leases *leases,
                                  const struct environment *env, struct slice request_id)
{
    uint64_t hash = table_hash(request_id);
    const struct ring *ring = slots_get(&leases->rings, env->number);
    for (unsigned i = 0; ring && i < LEASES_MAX; i++) {
        if (ring->requests[i] != hash)
            continue;
        const struct tracked *run = environment_find(env, slice_of(ring->run_ids[i]));
        if (run && run->run.execution == EXECUTION_PENDING_EXECUTING &&
            run_was_asked_by(&run->run, request_id))
            return run;
    }
    return NULL;
}
