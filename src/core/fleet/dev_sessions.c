/* dev_sessions.c - sessions begin, change their version, and end.
 *
 * The protocol does not say which session a new version belongs to. It is derived from the
 * number of connected CLIs (a lost connection counts for as long as its session may live):
 *
 *   none       workers only poll: the new version replaces sessions whose version was
 *              never named in a dequeue; any other session belongs to another worker
 *   one        the new version is that CLI's: it replaces all other sessions
 *   several    if there are more sessions than CLIs, one session is replaced, 3 s after the
 *              first dequeue with the new version: of those that had no dequeue since then,
 *              the one with the latest dequeue. Held dequeues return at the registration,
 *              so that each CLI names its version again */
#include "core/fleet/dev_sessions.h"

#include "base/mem.h"
#include "core/fleet/line.h"

enum {
    SETTLED_MS = 3000,
    SHORT_HOLD_MS = 250,
    EXPECTED_MS = 10 * 1000, /* a new version is named in a dequeue by then */
    LOST_MAX = SESSIONS_MAX,
    TOGETHER_MS = 1000, /* connections of one CLI close within this time */
    SILENT_MS = 6000,   /* a CLI polls each of its runs every 5 s */
};

struct dev_sessions {
    struct fleets *shared;
    struct environment *env;
    struct list all; // session::link
    uint32_t count;
    uint64_t audiences; /* in use, as bits */
    uint32_t connected[SESSION_LINES];
    int64_t lost[LOST_MAX]; /* when the last sockets were lost */
    uint32_t lost_count;
    int64_t alone_since; /* when the last connection closed; 0: one is open, or never was */
    int64_t return_until; /* monotonic ms */
    struct timer timer;   /* for the next deadline of a session */
};

static struct loop *loop_of(const struct dev_sessions *sessions)
{
    return sessions->shared->loop;
}

static int64_t now_of(const struct dev_sessions *sessions)
{
    return loop_now_ms(loop_of(sessions));
}

static struct session *session_at(const struct list *link)
{
    return container_of(link, struct session, link);
}

struct session *dev_sessions_next(const struct environment *env,
                                  const struct session *session)
{
    const struct dev_sessions *sessions = env->fleet->sessions;
    const struct list *next = session ? session->link.next : sessions->all.next;
    return next == &sessions->all ? NULL : session_at(next);
}

static struct session *newest(const struct dev_sessions *sessions)
{
    return list_empty(&sessions->all) ? NULL : session_at(sessions->all.prev);
}

/* Returns true if sessions that existed before the start may still return. Returns false
 * if no CLI is connected and all sessions belong to workers that only register: they know
 * of no other session. */
bool dev_sessions_may_return(const struct environment *env)
{
    const struct dev_sessions *sessions = env->fleet->sessions;
    if (now_of(sessions) >= sessions->return_until)
        return false;
    for (struct session *session = NULL; (session = dev_sessions_next(env, session));)
        if (session->has_asked)
            return true;
    return list_empty(&sessions->all) || sessions->connected[SESSION_SOCKET] ||
           sessions->connected[SESSION_STREAM];
}

int64_t dev_sessions_return_ms(const struct environment *env)
{
    const struct dev_sessions *sessions = env->fleet->sessions;
    return dev_sessions_may_return(env) ? sessions->return_until - now_of(sessions) : 0;
}

/* ---- connected CLIs ---- */

static uint32_t count_clis(struct dev_sessions *sessions)
{
    uint32_t kept = 0, sockets = sessions->connected[SESSION_SOCKET];
    for (uint32_t i = 0; i < sessions->lost_count; i++)
        if (now_of(sessions) - sessions->lost[i] < SESSION_LOST_MS)
            sessions->lost[kept++] = sessions->lost[i];
    sessions->lost_count = kept;
    sockets += kept;
    return sockets > sessions->connected[SESSION_STREAM]
               ? sockets
               : sessions->connected[SESSION_STREAM];
}

static bool is_silent_since(const struct session *session, int64_t closed_at)
{
    return !session->held && session->last_seen_at < closed_at + TOGETHER_MS;
}

int64_t dev_sessions_gone_ms(const struct environment *env, const struct session *session)
{
    const struct dev_sessions *sessions = env->fleet->sessions;
    int64_t since = sessions->alone_since;
    if (!since || !is_silent_since(session, since))
        since = session->missed_since;
    return since ? now_of(sessions) - since : 0;
}

static void look_again(struct dev_sessions *sessions, int64_t in_ms)
{
    struct timer *timer = &sessions->timer;
    if (!timer->place || timer->at_ms > now_of(sessions) + in_ms)
        loop_set_timer(loop_of(sessions), timer, sessions->shared->session_kind, in_ms);
}

/* A stream closes by itself twice a minute; a socket closes only with its CLI or the
 * network. */
void dev_sessions_disconnect(struct environment *env, enum session_line line)
{
    struct dev_sessions *sessions = env->fleet->sessions;
    sessions->connected[line]--;
    if (!sessions->connected[SESSION_SOCKET] && !sessions->connected[SESSION_STREAM])
        sessions->alone_since = now_of(sessions);
    if (line != SESSION_SOCKET || !env->is_dev)
        return;
    if (sessions->lost_count == LOST_MAX)
        memmove(sessions->lost, sessions->lost + 1,
                --sessions->lost_count * sizeof(sessions->lost[0]));
    sessions->lost[sessions->lost_count++] = now_of(sessions);
    look_again(sessions, SILENT_MS);
}

/* ---- tasks have changed ---- */

/* If several sessions declare a queue, the limits of the newest version apply. */
static void apply_limits(const struct dev_sessions *sessions)
{
    struct queues *queues = &sessions->env->queues;
    list_each (link, &sessions->all) {
        const struct worker *worker = session_at(link)->current;
        for (size_t i = 0; i < worker->queue_count; i++) {
            const struct queue_limit *queue = &worker->queues[i];
            if (queue->is_named_only)
                continue;
            queues_change_limit(queues, bytes_slice(queue->name), queue->limit);
            queues_set_total(queues, bytes_slice(queue->name), queue->total);
        }
        for (size_t i = 0; i < worker->limit_count; i++)
            limits_change(queues, bytes_slice(worker->limits[i].name),
                          worker->limits[i].per_key, worker->limits[i].total);
    }
}

static void changed(struct dev_sessions *sessions)
{
    apply_limits(sessions);
    fleet_changed(sessions->env);
}

/* ---- missing sessions ---- */

/* Returns when a connection closed that may be this session's; 0: it is not missing. */
static int64_t missed_since(const struct dev_sessions *sessions,
                            const struct session *session)
{
    if (session->held || sessions->count <= sessions->connected[SESSION_SOCKET])
        return 0;
    if (session->missed_since)
        return session->missed_since;
    for (uint32_t i = 0; i < sessions->lost_count; i++) {
        int64_t since = sessions->lost[i];
        int64_t quiet = since > session->last_seen_at ? since : session->last_seen_at;
        if (is_silent_since(session, since) && now_of(sessions) - quiet >= SILENT_MS)
            return since;
    }
    return 0;
}

static bool find_missed(struct dev_sessions *sessions)
{
    bool any = false;
    list_each (link, &sessions->all) {
        struct session *session = session_at(link);
        int64_t since = missed_since(sessions, session);
        any |= since != session->missed_since;
        session->missed_since = since;
    }
    return any;
}

static void touch(struct dev_sessions *sessions, struct session *session)
{
    session->last_seen_at = now_of(sessions);
    if (!session->missed_since)
        return;
    session->missed_since = 0;
    changed(sessions);
}

void dev_sessions_connect(struct environment *env, enum session_line line)
{
    struct dev_sessions *sessions = env->fleet->sessions;
    sessions->connected[line]++;
    sessions->alone_since = 0;
    if (find_missed(sessions))
        changed(sessions);
}

/* ---- a session ---- */

static uint32_t free_audience(struct dev_sessions *sessions)
{
    uint32_t audience = AUDIENCE_NOBODY + 1;
    while (sessions->audiences & (uint64_t)1 << audience)
        audience++;
    sessions->audiences |= (uint64_t)1 << audience;
    return audience;
}

/* Ends dequeues that name a version the session no longer has: their CLI then sends another
 * that names the new version. */
static void answer_held(struct dev_sessions *sessions, struct session *session)
{
    while (!list_empty(&session->dequeues)) {
        struct dequeue_seat *seat =
            container_of(session->dequeues.next, struct dequeue_seat, link);
        seat->shorten_wait(seat, now_of(sessions) + SHORT_HOLD_MS);
    }
}

/* heir: the session that gets its versions; NULL: none. */
static void end_session(struct dev_sessions *sessions, struct session *session,
                        struct session *heir)
{
    struct workers *workers = sessions->env->fleet->workers;
    answer_held(sessions, session);
    for (size_t i = 0; i < workers->count; i++)
        if (workers->all[i]->session == session)
            workers->all[i]->session = heir;
    sessions->audiences &= ~((uint64_t)1 << session->audience);
    sessions->count--;
    list_remove(&session->link);
    free(session);
}

static struct session *least_recent(const struct dev_sessions *sessions)
{
    struct session *found = session_at(sessions->all.next);
    list_each (link, &sessions->all)
        if (session_at(link)->last_seen_at < found->last_seen_at)
            found = session_at(link);
    return found;
}

/* Sessions are in the order of their versions: the newest registration is the last. */
static void insert(struct dev_sessions *sessions, struct session *session)
{
    const struct workers *workers = sessions->env->fleet->workers;
    struct list *before = &sessions->all;
    while (before->prev != &sessions->all &&
           workers_is_newer(workers, session_at(before->prev)->current, session->current))
        before = before->prev;
    list_append(before, &session->link);
}

static struct session *begin_session(struct dev_sessions *sessions, struct worker *worker)
{
    if (sessions->count == SESSIONS_MAX)
        end_session(sessions, least_recent(sessions), NULL);
    struct session *session = mem_new(struct session);
    session->current = worker;
    session->audience = free_audience(sessions);
    session->last_seen_at = session->registered_at = now_of(sessions);
    list_init(&session->dequeues);
    worker->session = session;
    insert(sessions, session);
    sessions->count++;
    look_again(sessions, SESSION_LOST_MS);
    return session;
}

/* ---- registrations ---- */

static bool is_replaced(const struct session *session, uint32_t clis)
{
    return clis == 1 || (!clis && !session->has_asked);
}

void dev_sessions_add(struct environment *env, struct worker *worker)
{
    struct dev_sessions *sessions = env->fleet->sessions;
    uint32_t clis = count_clis(sessions);
    struct session *session, *next;

    workers_add(env->fleet->workers, worker);
    struct session *added = begin_session(sessions, worker);
    added->has_replaced = clis == 1;
    for (session = dev_sessions_next(env, NULL); session; session = next) {
        next = dev_sessions_next(env, session);
        if (session != added && is_replaced(session, clis))
            end_session(sessions, session, added);
        else
            answer_held(sessions, session);
    }
    changed(sessions);
}

static struct worker *current_of(const struct environment *env)
{
    struct workers *workers = env->fleet->workers;
    return workers->count ? workers->all[workers->count - 1] : NULL;
}

void dev_sessions_renew(struct environment *env)
{
    struct worker *worker = current_of(env);
    if (env->is_dev && worker && (!worker->session || worker->session->current != worker)) {
        begin_session(env->fleet->sessions, worker);
        changed(env->fleet->sessions);
    } else if (env->is_dev && worker) {
        touch(env->fleet->sessions, worker->session);
    }
}

void dev_sessions_forget(struct environment *env, struct worker *worker)
{
    if (!worker->session || worker->session->current != worker)
        return;
    end_session(env->fleet->sessions, worker->session, NULL);
    changed(env->fleet->sessions);
}

/* ---- dequeues ---- */

static struct worker *worker_named(const struct environment *env, struct slice id)
{
    struct workers *workers = env->fleet->workers;
    if (!id.len)
        return current_of(env);
    for (size_t i = workers->count; i > 0; i--)
        if (slice_is(id, workers->all[i - 1]->id))
            return workers->all[i - 1];
    return NULL;
}

static struct session *asking(const struct worker *worker)
{
    struct session *session = worker ? worker->session : NULL;
    return session && session->current == worker ? session : NULL;
}

struct session *dev_sessions_asking(const struct environment *env, struct slice worker)
{
    return asking(worker_named(env, worker));
}

/* Returns true if a dequeue that names this worker may still arrive, sent by the CLI before
 * it got the response to its newer registration. */
static bool may_be_late(const struct dev_sessions *sessions, const struct worker *worker)
{
    return worker->session &&
           now_of(sessions) - worker->session->registered_at < SETTLED_MS;
}

struct session *dev_sessions_ask(struct environment *env, struct slice id)
{
    struct dev_sessions *sessions = env->fleet->sessions;
    struct worker *worker = worker_named(env, id);
    struct session *session = asking(worker);
    int64_t now = now_of(sessions);

    if (!worker || (!session && may_be_late(sessions, worker)))
        return NULL;
    if (!session) {
        session = begin_session(sessions, worker);
        session->has_replaced = true;
        changed(sessions);
    }
    if (id.len && !session->has_asked) {
        session->has_asked = true;
        session->asked_since = now;
        look_again(sessions, SETTLED_MS);
    }
    session->asked_at = now;
    touch(sessions, session);
    return session;
}

int64_t dev_sessions_hold_ms(const struct environment *env, const struct session *session,
                             int64_t wait_ms)
{
    const struct dev_sessions *sessions = env->fleet->sessions;
    const struct session *last = newest(sessions);
    bool expects = last && last != session && !last->has_asked &&
                   now_of(sessions) - last->registered_at < EXPECTED_MS;
    return (expects || !session) && wait_ms > SHORT_HOLD_MS ? SHORT_HOLD_MS : wait_ms;
}

void dev_sessions_touch(struct environment *env, const struct run *run)
{
    struct dev_sessions *sessions = env->fleet->sessions;
    struct worker *worker = NULL;
    if (!env->is_dev || !run->worker_version)
        return;
    for (size_t i = env->fleet->workers->count; i > 0 && !worker; i--)
        if (slice_is(bytes_slice(run->worker_version),
                     env->fleet->workers->all[i - 1]->version))
            worker = env->fleet->workers->all[i - 1];
    if (!worker)
        return;
    if (worker->session) {
        touch(sessions, worker->session);
    } else if (sessions->count == 1 && count_clis(sessions) <= 1) {
        worker->session = newest(sessions); /* it returned after a restart */
        changed(sessions);
    }
}

/* ---- timers ---- */

static bool is_lost(const struct dev_sessions *sessions, const struct session *session)
{
    return !session->held && now_of(sessions) - session->last_seen_at >= SESSION_LOST_MS;
}

/* Returns the session whose CLI now uses this one: without a dequeue since this one's
 * first. NULL: none. */
static struct session *predecessor(const struct dev_sessions *sessions,
                                   const struct session *heir)
{
    struct session *found = NULL;
    list_each (link, &sessions->all) {
        struct session *session = session_at(link);
        if (session == heir)
            break; /* the others are newer */
        if (!session->held && session->asked_at < heir->asked_since &&
            (!found || session->asked_at > found->asked_at))
            found = session;
    }
    return found;
}

static bool settle(struct dev_sessions *sessions, uint32_t clis)
{
    bool any = false;
    list_each (link, &sessions->all) {
        struct session *heir = session_at(link);
        if (heir->has_replaced || !heir->has_asked || sessions->count <= clis ||
            now_of(sessions) - heir->asked_since < SETTLED_MS)
            continue;
        struct session *old = predecessor(sessions, heir);
        if (!old)
            continue;
        heir->has_replaced = true;
        end_session(sessions, old, heir);
        any = true;
        break;
    }
    return any;
}

static bool end_lost(struct dev_sessions *sessions)
{
    bool any = false;
    struct session *session, *next;
    for (session = dev_sessions_next(sessions->env, NULL); session; session = next) {
        next = dev_sessions_next(sessions->env, session);
        if (!is_lost(sessions, session))
            continue;
        end_session(sessions, session, NULL);
        any = true;
    }
    return any;
}

static void set_timer(struct dev_sessions *sessions)
{
    int64_t now = now_of(sessions), left = sessions->return_until - now;
    int64_t lost = sessions->lost_count ? sessions->lost[sessions->lost_count - 1] : 0;
    if (left > 0)
        look_again(sessions, left);
    if (sessions->lost_count)
        look_again(sessions, sessions->lost[0] + SESSION_LOST_MS - now);
    list_each (link, &sessions->all) {
        const struct session *session = session_at(link);
        int64_t silence = session->held ? 0 : now - session->last_seen_at;
        look_again(sessions, SESSION_LOST_MS - silence);
        int64_t quiet = silence < now - lost ? silence : now - lost;
        if (lost && quiet < SILENT_MS)
            look_again(sessions, SILENT_MS - quiet);
        if (session->has_asked && now - session->asked_since < SETTLED_MS)
            look_again(sessions, session->asked_since + SETTLED_MS - now);
    }
}

void dev_sessions_on_time(struct timer *timer)
{
    struct dev_sessions *sessions = container_of(timer, struct dev_sessions, timer);
    if (sessions->shared->is_draining)
        return; /* they leave because the gateway stops */
    uint32_t clis = count_clis(sessions);
    bool any = end_lost(sessions);
    while (clis && settle(sessions, clis))
        any = true;
    any |= find_missed(sessions);
    if (sessions->return_until && now_of(sessions) >= sessions->return_until) {
        sessions->return_until = 0;
        any = true;
    }
    if (any)
        changed(sessions);
    set_timer(sessions);
}

/* ---- the session of a task or run ---- */

const struct worker_task *dev_sessions_task(const struct environment *env,
                                            struct slice task)
{
    const struct dev_sessions *sessions = env->fleet->sessions;
    for (struct list *link = sessions->all.prev; link != &sessions->all;
         link = link->prev) {
        const struct worker_task *found = worker_task(session_at(link)->current, task);
        if (found)
            return found;
    }
    return NULL;
}

static struct session *of_version(const struct environment *env, struct slice version,
                                  struct slice task)
{
    const struct worker *worker = workers_by_version(env->fleet->workers, version);
    return worker && worker_task(worker, task) ? worker->session : NULL;
}

struct session *dev_sessions_of_run(const struct environment *env, const struct run *run)
{
    const struct dev_sessions *sessions = env->fleet->sessions;
    struct slice task = bytes_slice(run->task);
    if (!sessions->count)
        return NULL;
    if (run->worker_version)
        return of_version(env, bytes_slice(run->worker_version), task);
    struct session *missed = NULL;
    for (struct list *link = sessions->all.prev; link != &sessions->all;
         link = link->prev) {
        struct session *session = session_at(link);
        if (!worker_task(session->current, task))
            continue;
        if (!session->missed_since)
            return session;
        if (!missed)
            missed = session;
    }
    return missed;
}

/* ---- all of an environment ---- */

void dev_sessions_start(struct environment *env)
{
    struct dev_sessions *sessions = env->fleet->sessions;
    if (!env->is_dev || !env->fleet->workers->count)
        return;
    sessions->return_until = now_of(sessions) + SESSION_LOST_MS;
    look_again(sessions, SESSION_LOST_MS);
}

struct dev_sessions *dev_sessions_create(struct fleet *fleet, struct environment *env)
{
    struct dev_sessions *sessions = mem_new(struct dev_sessions);
    sessions->shared = fleet->shared;
    sessions->env = env;
    list_init(&sessions->all);
    return sessions;
}

/* Requires that no dequeue waits. */
void dev_sessions_destroy(struct dev_sessions *sessions)
{
    while (!list_empty(&sessions->all))
        free(session_at(list_take(&sessions->all)));
    timers_clear(loop_timers(loop_of(sessions)), &sessions->timer);
    free(sessions);
}
