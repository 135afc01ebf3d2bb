/* observation.c - determines which gateways are alive, without comparing machines' clocks.
 *
 *   a leader     ──●─────●─────●──── × stopped, cut off, killed
 *                 sent                     doubts 4 s after sending the last beat that got a
 *                                          response, and rejects requests from then on
 *   another one  ────○─────○─────○───────────────────────● dead: 5 s after I saw it change,
 *                                                          while my own beats got responses
 *
 * A beat is seen after it was sent, and 5 s are longer than 4 s even if clocks are off by a
 * tenth. So the first gateway has stopped serving before the second one begins. This
 * matters only for reads from memory. The terms in the database keep writes safe whatever
 * the clocks do.
 *
 * A gateway that cannot reach the database learns nothing about the others. So after a
 * missing response to one of my own beats, every gateway gets the full time again.
 *
 * The database ends the session of a process that was killed at once. So a leader that has
 * registered its session counts as dead sooner:
 *
 *   a leader     ──●──●──●──●──── × killed: its session ends
 *                           sent        would doubt 1 s after sending that beat
 *   another one  ────○────────○─────────○─────────────────────────○ dead
 *                                       the session has ended     and 1.5 s later still has,
 *                                                                 without another beat
 *
 * The session answered the last beat, so that was sent before the session ended. A leader that
 * lives and only lost the connection reconnects within that time, or has been in doubt for
 * half a second when another one leads. The same must hold for its followers, which trust
 * themselves for the time that it grants: it registers its session only once no grant lasts
 * longer than 1 s.
 *
 * A restart of the database ends all sessions, also of gateways that live. So sessions do not
 * count until my beats have had responses for the full time. */
#include "store/lead/observation.h"

#include "base/mem.h"

void observation_init(struct observation *observation, int64_t dead_ms, int64_t beat_ms,
                      int64_t now_ms)
{
    *observation = (struct observation){ .dead_ms = dead_ms,
                                         .gap_ms = 2 * beat_ms,
                                         .sent_ms = now_ms,
                                         .answered_ms = now_ms,
                                         .steady_ms = INT64_MAX };
}

void observation_finish(struct observation *observation)
{
    free(observation->seen);
    observation->seen = NULL;
    observation->count = 0;
}

static const struct seen_gateway *find(const struct observation *observation, uint64_t id)
{
    for (size_t i = 0; i < observation->count; i++)
        if (observation->seen[i].gateway.id == id)
            return &observation->seen[i];
    return NULL;
}

void observation_send(struct observation *observation, bool registers)
{
    observation->is_registered |= registers;
}

bool observation_may_register(const struct observation *observation, int64_t now_ms)
{
    bool is_recent = now_ms - observation->sent_ms <= SESSION_TRUST_MS / 2;
    return observation->is_registered ||
           (is_recent && observation->granted_ms <= now_ms + SESSION_TRUST_MS);
}

/* Returns ended_ms of a gateway, given how it was in the response before. */
static int64_t ended_ms(const struct seen_gateway *before,
                        const struct store_gateway *gateway, int64_t now_ms)
{
    bool stood_still = before && before->gateway.beat == gateway->beat;
    if (gateway->session != SESSION_ENDED)
        return 0;
    return stood_still && before->ended_ms ? before->ended_ms : now_ms;
}

void observation_answer(struct observation *observation, int64_t sent_ms, int64_t now_ms,
                        const struct store_beat *answer)
{
    size_t count = answer->gateway_count;
    struct seen_gateway *seen = mem_new_array(struct seen_gateway, count);
    for (size_t i = 0; i < count; i++) {
        const struct store_gateway *gateway = &answer->gateways[i];
        const struct seen_gateway *before = find(observation, gateway->id);
        bool stood_still = before && before->gateway.beat == gateway->beat;
        seen[i] = (struct seen_gateway){ *gateway, stood_still ? before->moved_ms : now_ms,
                                         ended_ms(before, gateway, now_ms) };
        if (gateway->id == answer->me)
            observation->is_registered = gateway->session != SESSION_UNKNOWN;
    }
    free(observation->seen);
    observation->seen = seen;
    observation->count = count;
    if (observation->steady_ms > now_ms ||
        now_ms - observation->answered_ms > observation->gap_ms)
        observation->steady_ms = now_ms;
    observation->sent_ms = sent_ms;
    observation->answered_ms = now_ms;
}

void observation_miss(struct observation *observation)
{
    observation->steady_ms = INT64_MAX;
}

const struct store_gateway *observation_find(const struct observation *observation,
                                             uint64_t id)
{
    const struct seen_gateway *seen = find(observation, id);
    return seen ? &seen->gateway : NULL;
}

/* Returns the ms until it counts as dead because its session has ended. */
static int64_t session_dead_in(const struct observation *observation,
                               const struct seen_gateway *seen, int64_t now_ms)
{
    int64_t dead_ms = seen->ended_ms + SESSION_DEAD_MS;
    if (!seen->ended_ms || now_ms - observation->steady_ms < observation->dead_ms)
        return INT64_MAX;
    if (observation->sent_ms >= dead_ms)
        return 0;
    return dead_ms > now_ms ? dead_ms - now_ms : 1;
}

int64_t observation_dead_in(const struct observation *observation, uint64_t id,
                            int64_t now_ms)
{
    const struct seen_gateway *seen = find(observation, id);
    if (!seen || observation->steady_ms > now_ms ||
        now_ms - observation->answered_ms > observation->gap_ms)
        return INT64_MAX;
    int64_t since =
        seen->moved_ms > observation->steady_ms ? seen->moved_ms : observation->steady_ms;
    int64_t left = since + observation->dead_ms - now_ms;
    int64_t by_session = session_dead_in(observation, seen, now_ms);
    left = left < by_session ? left : by_session;
    return left > 0 ? left : 0;
}

static int64_t doubt_ms(const struct observation *observation)
{
    int64_t trust_ms = observation->dead_ms * 4 / 5;
    if (observation->is_registered && trust_ms > SESSION_TRUST_MS)
        trust_ms = SESSION_TRUST_MS;
    return observation->sent_ms + trust_ms + 1;
}

bool observation_doubts(const struct observation *observation, int64_t now_ms)
{
    return now_ms >= doubt_ms(observation);
}

int64_t observation_doubts_in(const struct observation *observation, int64_t now_ms)
{
    int64_t left = doubt_ms(observation) - now_ms;
    return left > 0 ? left : 0;
}

int64_t observation_grant(struct observation *observation, bool registers, int64_t now_ms)
{
    int64_t left = observation_doubts_in(observation, now_ms);
    if (registers && left > SESSION_TRUST_MS)
        left = SESSION_TRUST_MS;
    if (left && observation->granted_ms < now_ms + left)
        observation->granted_ms = now_ms + left;
    return left;
}

bool observation_has_other(const struct observation *observation, uint64_t me,
                           int64_t now_ms)
{
    for (size_t i = 0; i < observation->count; i++) {
        const struct store_gateway *gateway = &observation->seen[i].gateway;
        if (gateway->id != me && !gateway->draining &&
            observation_dead_in(observation, gateway->id, now_ms))
            return true;
    }
    return false;
}

size_t observation_still_for(const struct observation *observation, uint64_t me,
                             int64_t still_ms, int64_t now_ms,
                             struct store_gateway *gateways, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < observation->count && count < most; i++) {
        const struct seen_gateway *seen = &observation->seen[i];
        if (seen->gateway.id != me && now_ms - seen->moved_ms >= still_ms)
            gateways[count++] = seen->gateway;
    }
    return count;
}
