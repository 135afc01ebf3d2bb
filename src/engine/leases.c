/* leases.c - a ring of the newest leases, by the hash of the request. */
#include "engine/leases.h"

#include "base/mem.h"

enum { LEASES_MAX = 1024 };

struct leases {
    uint64_t requests[LEASES_MAX]; /* hashes; 0: none */
    struct {
        uint32_t env;
        char run_id[ID_MAX];
    } runs[LEASES_MAX];
    unsigned next;
};

struct leases *leases_create(void)
{
    return mem_new(struct leases);
}

void leases_destroy(struct leases *leases)
{
    free(leases);
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
    unsigned at = leases->next++ % LEASES_MAX;
    leases->requests[at] = table_hash(bytes_slice(run->worker_request));
    leases->runs[at].env = tracked->env->number;
    snprintf(leases->runs[at].run_id, ID_MAX, "%s", run->id);
}

const struct tracked *leases_find(const struct leases *leases,
                                  const struct environment *env, struct slice request_id)
{
    uint64_t hash = table_hash(request_id);
    for (unsigned i = 0; i < LEASES_MAX; i++) {
        if (leases->requests[i] != hash || leases->runs[i].env != env->number)
            continue;
        const struct tracked *run = environment_find(env, slice_of(leases->runs[i].run_id));
        if (run && run->run.execution == EXECUTION_PENDING_EXECUTING &&
            run_was_asked_by(&run->run, request_id))
            return run;
    }
    return NULL;
}
