/* leases.c - for each environment a ring of its newest leases, by the hash of the request:
 * one that leases a lot does not push out what others have to find again. */
#include "engine/leases.h"

#include "base/mem.h"

enum { LEASES_MAX = 512 };

struct ring {
    uint64_t requests[LEASES_MAX]; /* hashes; 0: none */
    char run_ids[LEASES_MAX][ID_MAX];
    unsigned next;
};

struct leases {
    struct ring **rings; /* by number of the environment; NULL: nothing was leased there */
    uint32_t count;
};

struct leases *leases_create(void)
{
    return mem_new(struct leases);
}

void leases_destroy(struct leases *leases)
{
    for (uint32_t i = 0; i < leases->count; i++)
        free(leases->rings[i]);
    free(leases->rings);
    free(leases);
}

static struct ring *ring_of(struct leases *leases, uint32_t env)
{
    if (env >= leases->count) {
        leases->rings = mem_resize(leases->rings, (env + 1) * sizeof(struct ring *));
        while (leases->count <= env)
            leases->rings[leases->count++] = NULL;
    }
    if (!leases->rings[env])
        leases->rings[env] = mem_new(struct ring);
    return leases->rings[env];
}

bool run_was_asked_by(const struct run *run, struct slice request_id)
{
    return request_id.ptr && run->worker_request &&
           slice_equal(bytes_slice(run->worker_request), request_id);
}

void run_remember_request(struct run *run, struct slice request_id)
{
    bytes_unref(run->worker_request);
    run->worker_request = request_id.ptr ? bytes_create(request_id) : NULL;
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
    const struct ring *ring =
        env->number < leases->count ? leases->rings[env->number] : NULL;
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
