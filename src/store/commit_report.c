/* commit_report.c - reports commits to callers, for a limited time per turn of the loop. */
#include "store/commit_report.h"

#include <uv.h>

#include "base/log.h"
#include "base/metrics.h"

enum {
    /* Time per turn. At least one commit, or a part of it, is applied. */
    REPORT_NS = 2000000,
};

void commit_report_init(struct commit_report *report, struct store *store,
                        struct positions *positions)
{
    *report = (struct commit_report){ .store = store, .positions = positions };
    commit_turns_init(&report->turns);
}

void commit_report_finish(struct commit_report *report)
{
    commit_turns_finish(&report->turns);
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

static bool spans_environments(const struct store_commit *req)
{
    for (size_t i = 1; i < req->change_count; i++)
        if (req->changes[i].env != req->changes[0].env)
            return true;
    return false;
}

void commit_report_take(struct commit_report *report, struct list *done)
{
    while (!list_empty(done)) {
        struct store_commit *req = container_of(done->next, struct store_commit, link);
        bool spans = spans_environments(req);
        if (commit_turns_count(&report->turns) && (spans || report->spans))
            return;
        report->spans = spans;
        list_take(done);
        commit_turns_add(&report->turns, report->store, req);
    }
}

static void report_first(struct commit_report *report, struct store_commit *req)
{
    report->store->synced_us = req->synced_us;
    if (req->status == STORE_OK && req->apply && req->apply(req)) {
        commit_turns_pass(&report->turns);
        return;
    }
    commit_turns_take(&report->turns);
    if (req->status == STORE_OK)
        positions_note(report->positions, req);
    count_outcome(req);
    req->done(req, req->status);
}

bool commit_report_run(struct commit_report *report)
{
    uint64_t end = uv_hrtime() + REPORT_NS;
    struct store_commit *req;
    commit_turns_begin_round(&report->turns);
    while ((req = commit_turns_first(&report->turns))) {
        report_first(report, req);
        if (uv_hrtime() >= end)
            break;
    }
    report->store->synced_us = 0;
    return !commit_turns_count(&report->turns);
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
        log_error("the store failed; no write is acknowledged", "reason", reason, NULL);
    if (!failing && store->failing)
        log_info("the store recovered", NULL);
    if (full && !store->full)
        log_error("the disk is full; no write is acknowledged", "reason", reason, NULL);
    if (!full && store->full)
        log_info("the disk has free space again", NULL);
    store->failing = failing;
    store->full = full;
}
