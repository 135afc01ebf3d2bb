/* link_rate.c - measures over half a second or more while a link is late.
 *
 * A link that is not late carries at least what is sent. If some bytes were read sooner than the
 * measured rate permits, the link has become faster. */
#include "server/peers/link_rate.h"

enum {
    SECOND_MS = 1000,
    POINT_MS = SECOND_MS / 2,
    SILENCE_MS = 500, /* without an answer: this process may have been busy, too */
    FIRST_MS = 2000,  /* the same, before the first answer */
    SOON_MS = 20,     /* the least time for which a rate is calculated */
    GROWTH_MAX = 4,   /* at once */
};

static bool waits(const struct link_rate *link)
{
    return link->read < link->marked;
}

/* Returns the bytes a second since then. */
static size_t rate_since(const struct link_rate *link, const struct link_point *since,
                         int64_t now_ms)
{
    int64_t ms = now_ms - since->at_ms > SOON_MS ? now_ms - since->at_ms : SOON_MS;
    return (size_t)((link->read - since->read) * SECOND_MS / (uint64_t)ms);
}

size_t link_rate_of(const struct link_rate *link)
{
    return link->rate ? link->rate : LINK_ASSUMED;
}

/* Returns false if the time was too short. */
static bool measure(struct link_rate *link, int64_t now_ms, bool is_late)
{
    if (now_ms - link->points[0].at_ms < LINK_DELAY_MS)
        return false;
    size_t rate = rate_since(link, &link->points[0], now_ms);
    if (is_late || rate > link_rate_of(link))
        link->rate = rate > LINK_SLOWEST ? rate : LINK_SLOWEST;
    if (now_ms - link->points[1].at_ms >= POINT_MS) {
        link->points[0] = link->points[1];
        link->points[1] = (struct link_point){ now_ms, link->read };
    }
    return true;
}

size_t link_rate_most(const struct link_rate *link)
{
    uint64_t ms = LINK_DELAY_MS + (uint64_t)link->least_ms;
    uint64_t most = link_rate_of(link) * ms / SECOND_MS;
    return most < LINK_LEAST ? LINK_LEAST : most > LINK_MOST ? LINK_MOST : (size_t)most;
}

/* Every mark was answered soon. A few bytes show little: a link may carry the first ones faster
 * than others. */
static void note_fast(struct link_rate *link, int64_t now_ms)
{
    size_t rate = rate_since(link, &link->begun, now_ms), known = link_rate_of(link);
    if (link->read - link->begun.read >= link_rate_most(link) / 2 && rate > known)
        link->rate = rate < GROWTH_MAX * known ? rate : GROWTH_MAX * known;
}

bool link_rate_is_due(const struct link_rate *link, uint64_t bytes)
{
    return !link->marked || bytes - link->marked >= LINK_MARK;
}

void link_rate_mark(struct link_rate *link, int64_t now_ms, uint64_t before, uint64_t bytes)
{
    if (!waits(link)) {
        link->read = before;
        link->heard_ms = now_ms;
        link->begun = (struct link_point){ now_ms, before };
        link->points[0] = link->points[1] = link->begun;
    }
    link->marked = bytes;
}

void link_rate_answer(struct link_rate *link, int64_t now_ms, uint64_t bytes,
                      int64_t since_ms)
{
    if (bytes <= link->read || bytes > link->marked || since_ms < 0 || since_ms > now_ms)
        return;
    int64_t lag_ms = now_ms - since_ms;
    link->read = bytes;
    link->heard_ms = now_ms;
    if (!link->least_ms || lag_ms < link->least_ms)
        link->least_ms = lag_ms > 1 ? lag_ms : 1;
    if (!measure(link, now_ms, lag_ms - link->least_ms >= LINK_DELAY_MS) && !waits(link))
        note_fast(link, now_ms);
}

void link_rate_look(struct link_rate *link, int64_t now_ms)
{
    int64_t limit_ms = link->least_ms ? link->least_ms + SILENCE_MS : FIRST_MS;
    if (waits(link) && now_ms - link->heard_ms >= limit_ms)
        measure(link, now_ms, true);
}
