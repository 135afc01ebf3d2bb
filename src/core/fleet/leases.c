/* leases.c - a ring of the newest leases of each environment, by the hash of the request.
 *
 * Each environment has its own ring, so a busy one does not evict another's leases. */
#include "core/fleet/leases.h"

#include "base/mem.h"
#include "core/model/run_end.h"

enum { LEASES_MAX = 512 };

struct lease {
    uint64_t request; /* hash; 0: none */
    char run_id[ID_MAX];
};

struct leases {
    struct lease *ring; /* NULL: nothing was leased yet */
    unsigned next;
};

struct leases *leases_create(void)
{
    return mem_new(struct leases);
}

void leases_destroy(struct leases *leases)
{
    free(leases->ring);
    free(leases);
}

void leases_note(const struct tracked *tracked)
{
    const struct run *run = &tracked->run;
    struct leases *leases = tracked->env->fleet->leases;
    if (run->execution != EXECUTION_PENDING_EXECUTING || !run->worker_request)
        return;
    if (!leases->ring)
        leases->ring = mem_new_array(struct lease, LEASES_MAX);
    struct lease *lease = &leases->ring[leases->next++ % LEASES_MAX];
    lease->request = table_hash(bytes_slice(run->worker_request));
    snprintf(lease->run_id, ID_MAX, "%s", run->id);
}

const struct tracked *leases_find(const struct environment *env, struct slice request_id)
{
    uint64_t hash = table_hash(request_id);
    const struct leases *leases = env->fleet->leases;
    for (unsigned i = 0; leases->ring && i < LEASES_MAX; i++) {
        if (leases->ring[i].request != hash)
            continue;
        const struct tracked *run = environment_find(env, slice_of(leases->ring[i].run_id));
        if (run && run->run.execution == EXECUTION_PENDING_EXECUTING &&
            run_was_asked_by(&run->run, request_id))
            return run;
    }
    return NULL;
}
