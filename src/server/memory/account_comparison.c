/* account_comparison.c - reads all documents of the accounts between two equal positions.
 *
 * Some writes reach memory in a later turn than that of their commit. So a difference counts
 * once it was found several times. */
#include "server/memory/account_comparison.h"

#include "accounts/account_versions.h"
#include "base/log.h"
#include "base/metrics.h"

enum {
    AGAIN_MS = 1000,
    TRIES_MAX = 30,
    DIFFERENCES_MAX = 3,
};

static void compare(struct account_comparison *comparison);

void account_comparison_init(struct account_comparison *comparison, struct loop *loop,
                             const struct account_comparison_options *options)
{
    *comparison = (struct account_comparison){ .loop = loop, .options = *options };
}

bool account_comparison_is_idle(const struct account_comparison *comparison)
{
    return !comparison->is_reading;
}

static void on_again(struct timer *timer)
{
    compare(container_of(timer, struct account_comparison, again));
}

/* Gives up after TRIES_MAX: accounts that change all the time cannot be compared. */
static void compare_again(struct account_comparison *comparison)
{
    struct timers *timers = loop_timers(comparison->loop);
    if (++comparison->tries < TRIES_MAX) {
        loop_set_timer(comparison->loop, &comparison->again, timers_kind(timers, on_again),
                       AGAIN_MS);
        return;
    }
    log_warn("cannot compare the accounts in memory with the database", NULL);
    comparison->options.done(comparison->options.owner, false);
}

static void report_difference(struct account_comparison *comparison)
{
    const struct bytes *missing = comparison->missing;
    log_error("accounts in memory differ from the database", "document",
              missing ? missing->data : "one that was removed", "seq",
              log_number((int64_t)comparison->position), NULL);
    metric_add(M_MEMORY_DIFFERENT, 1);
    bytes_clear(&comparison->missing);
    comparison->options.done(comparison->options.owner, true);
}

static void report_equal(struct account_comparison *comparison)
{
    log_info("accounts in memory equal the database", "documents",
             log_number((int64_t)comparison->equal), NULL);
    comparison->options.done(comparison->options.owner, false);
}

/* Returns true if memory has all that is committed. */
static bool is_current(const struct account_comparison *comparison)
{
    struct store *store = comparison->options.store;
    return store->ops->position(store, ENV_INSTALLATION).seq == comparison->position &&
           account_writer_idle(comparison->options.writer);
}

static void judge(struct account_comparison *comparison)
{
    size_t count = accounts_document_count(comparison->options.accounts);
    if (!comparison->missing && comparison->equal == count)
        report_equal(comparison);
    else if (++comparison->differences == DIFFERENCES_MAX)
        report_difference(comparison);
    else
        compare_again(comparison);
}

static void on_read(struct load_documents *load, enum err status)
{
    struct account_comparison *comparison =
        container_of(load, struct account_comparison, load);
    comparison->is_reading = false;
    if (comparison->stopped)
        bytes_clear(&comparison->missing);
    else if (!status && is_current(comparison))
        judge(comparison);
    else
        compare_again(comparison);
}

static enum err take(struct load_documents *load, const struct document *document,
                     struct failure *why)
{
    struct account_comparison *comparison =
        container_of(load, struct account_comparison, load);
    (void)why;
    if (accounts_have(comparison->options.accounts, document))
        comparison->equal++;
    else if (!comparison->missing)
        comparison->missing = bytes_ref(document->name);
    return OK;
}

static void compare(struct account_comparison *comparison)
{
    struct store *store = comparison->options.store;
    comparison->position = store->ops->position(store, ENV_INSTALLATION).seq;
    comparison->equal = 0;
    bytes_clear(&comparison->missing);
    comparison->is_reading = true;
    comparison->load = (struct load_documents){ .store = store,
                                                .loop = comparison->loop,
                                                .env = ENV_INSTALLATION,
                                                .take = take,
                                                .done = on_read };
    load_documents_of_accounts(&comparison->load);
}

void account_comparison_begin(struct account_comparison *comparison)
{
    compare(comparison);
}

void account_comparison_stop(struct account_comparison *comparison)
{
    comparison->stopped = true;
    timers_clear(loop_timers(comparison->loop), &comparison->again);
    if (!comparison->is_reading)
        bytes_clear(&comparison->missing);
}
