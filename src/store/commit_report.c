/* commit_report.c - applying changes takes longer than committing them: so a turn reports few
 * commits, and goes on with the next one only while it has time. */
#include "store/commit_report.h"

#include <uv.h>

#include "base/log.h"
#include "base/metrics.h"

enum {
    REPORTED_PER_TURN = 256, /* commits and changes; one commit in any case */
    REPORT_NS = 2000000,     /* of a turn: what one change costs, those who watch decide */
};

void commit_report_init(struct commit_report *report, struct store *store,
                        struct positions *positions)
{
    *report = (struct commit_report){ .store = store, .positions = positions };
    list_init(&report->reporting);
}

int64_t commit_report_now_us(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

static void count_outcome(const struct store_commit *req)
{
    static const enum metric outcomes[] = {
        [STORE_OK] = M_COMMITS,
        [STORE_LOST] = M_COMMITS_LOST,
        [STORE_TAKEN] = M_COMMITS_TAKEN,
        [STORE_MISSING] = M_COMMITS_MISSING,
    };
    bool decided = req->status <= STORE_MISSING;
    metric_add(decided ? outcomes[req->status] : M_COMMITS_FAILED, 1);
    if (req->status == STORE_OK)
        metric_observe_us(H_COMMIT, commit_report_now_us() - req->begun_us);
}

/* A large batch comes alone. */
void commit_report_take(struct commit_report *report, struct list *done)
{
    size_t count = 0;
    if (!list_empty(&report->reporting))
        return;
    while (!list_empty(done)) {
        count += container_of(done->next, struct store_commit, link)->change_count + 1;
        if (count > REPORTED_PER_TURN && !list_empty(&report->reporting))
            return;
        list_append(&report->reporting, list_take(done));
    }
}

/* Goes on to the next commit behind one that needs no more turns. */
bool commit_report_run(struct commit_report *report)
{
    uint64_t end = uv_hrtime() + REPORT_NS;
    list_each (link, &report->reporting) {
        struct store_commit *req = container_of(link, struct store_commit, link);
        report->store->synced_us = req->synced_us;
        if (req->status == STORE_OK && req->apply && req->apply(req))
            break;
        list_remove(link);
        if (req->status == STORE_OK)
            positions_note(report->positions, req);
        count_outcome(req);
        req->done(req, req->status);
        if (uv_hrtime() >= end)
            break;
    }
    report->store->synced_us = 0;
    return list_empty(&report->reporting);
}

void commit_report_growth(struct commit_report *report, uint32_t env, int64_t bytes)
{
    struct store *store = report->store;
    positions_grow(report->positions, env, bytes);
    if (store->on_stored)
        store->on_stored(store->stored_owner, env, bytes);
}

void commit_report_state(struct commit_report *report, bool failing, bool full,
                         const char *reason)
{
    struct store *store = report->store;
    if (failing && !store->failing)
        log_error("the store failed, nothing is acknowledged", "reason", reason, NULL);
    if (!failing && store->failing)
        log_info("the store works again", NULL);
    if (full && !store->full)
        log_error("the disk is full, nothing is written", "reason", reason, NULL);
    if (!full && store->full)
        log_info("the disk has space again", NULL);
    store->failing = failing;
    store->full = full;
}
