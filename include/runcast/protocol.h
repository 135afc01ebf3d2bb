/* protocol.h - runs.v1: what travels between the gateway and its WebSocket clients.
 *
 *   GET /realtime/v1/ws            upgrade; Authorization: Bearer, ?token= or hello.token
 *   Sec-WebSocket-Protocol         runs.v1.json (text) or runs.v1.msgpack (binary);
 *                                  none: JSON
 *
 * A message is one object (map). The client's are JSON text in both subprotocols. In
 * msgpack a time is the timestamp extension (type -1), and payload, output, metadata and
 * error are a str that holds their JSON text; all else is the plain counterpart of JSON.
 * Members that a peer does not know are ignored, and the gateway says which of the client's:
 * welcome, ok and end, the answers to hello, sub and unsub, name them as ignored (at most 16,
 * in 1 KiB); welcome those of the upgrade's query, too. null stands for absent in the
 * client's.
 *
 * Client:
 *   {"op":"hello","token":"…","fields":["-payload"],"every":0,"api":"2025-07-16"}
 *   {"op":"sub","id":1,"run":"run_x" | "batch":"batch_x" | "tags":["a","b"] | "all":true,
 *        "task":["t"],"since":"24h" | ISO time,"limit":200,"from":[epoch,seq,base],
 *        "counts":true}
 *   {"op":"watch","id":1,"filter":{…},"limit":100,"counts":true}
 *   {"op":"unsub","id":1}      {"op":"auth","token":"…"}
 *
 *   Of hello everything is optional but what authenticates. fields: those wanted, or with
 *   a minus those left out; id, taskIdentifier, status, createdAt, updatedAt, tags and
 *   batchId always come, realtimeStreams and queue to those who name them. every: at least so many ms between two patches. api: the words
 *   for statuses; without it those of SDK 3.x. Of sub: exactly one of run, batch, tags
 *   (a run must have all of them) and all; task, since (created at or after) and limit
 *   (the newest so many, at subscribe time) narrow it; from goes on where a connection
 *   ended. Of watch: filter has the names and values of a list of runs (status,
 *   taskIdentifier, version, tag, queue, machine, region, batch, schedule, bulkAction,
 *   isTest, from, to, period), without from, to and period that of the last week; limit is
 *   at most 200. counts: how many there are, beside the rows.
 *
 * Server:
 *   {"op":"welcome","epoch":"9f3c","seq":S,"env":"…","fields":[…],"expires":time?,
 *        "limits":{"subscriptions":…,"tags":…,"messageBytes":…,"messagesPerSecond":…,
 *                  "burst":…,"watches":…,"watchLimit":…},"ignored":["…"]?}
 *   {"op":"ok","id":1,"mode":"snapshot" | "resume","count":42?,"since":time?,
 *        "ignored":["…"]?}
 *   {"op":"rows","id":1,"seq":S,"more":true?,"rows":[R,…]}   catching up one subscription
 *   {"op":"patch","seq":S,"more":true?,"rows":[R,…]}         all live ones, each run once
 *   {"op":"list","id":1,"seq":S,"begin":true?,"more":true?,"rows":[R,…]}   of a watch
 *   {"op":"counts","id":1,"seq":S,"byStatus":{"EXECUTING":3,…},"total":N}
 *   {"op":"end","id":1,"code":"…"?,"ignored":["…"]?}      answer to unsub, or ended by the
 *                                         server
 *   {"op":"floor","updatedAt":time}       final runs last changed before are gone
 *   {"op":"error","id":1?,"code":"…","message":"…"}
 *   {"op":"ping","seq":S}                 you are in sync up to here
 *   {"op":"expiring","in":ms}             refresh the token with auth
 *   {"op":"drain","in":ms}                open another connection in so many ms, then close
 *                                         this one. If it is closed before, the time holds
 *
 *   R = [runId, version, {changed fields}]       absolute values, null: cleared
 *   R = [runId, version, {all fields}, 1]        replaces what the client has of the run
 *   R = [runId, version, null, 2]                the run leaves the watch (list only)
 *
 * A watch is the newest runs of a filter, those with the highest ids; a run leaves it when its
 * status is another, when a newer one takes its place, or when its time is over. It has no
 * position: begin says that what the client had of it is over, after ok, and whenever the
 * client was too slow for differences; a new connection sends watch anew. A frame without more
 * makes the client complete: its runs are those of the list at seq. A row is judged by its
 * version as others are, but within its watch. Counts are those of all runs of the filter,
 * exact at seq, whole each time, at most four times a second; what is not named is 0.
 *
 * What a client does:
 *   - A row whose version is not above the one it has is old news, unless it is whole and
 *     of the same version. A jump by k + 1 means k states were skipped: it was behind.
 *   - It keeps runs by id and files them under its subscriptions by the same filters; a
 *     run never leaves a filter; what a limit takes of other filters' runs is known with its
 *     ok. After unsub it goes on applying until end.
 *   - It keeps one position: epoch of welcome, seq of the last frame, base, the seq of the
 *     last frame without more. patch and ping move it, and a rows without more, and only
 *     while every subscription that was complete before is live again. On a new connection
 *     it sends the three as from, and as since the floor that ok named for its limit. A
 *     subscription that was not complete starts without from.
 *   - At the end of a snapshot (mode of ok) it forgets runs of that filter which were not
 *     in it, unless another live filter holds them.
 *   - A write answers x-runs-seq: epoch.seq; a frame without more at or above it shows it.
 *
 * Codes of error and end, beside a sentence that says what to do:
 *   bad_message   not JSON, no object, nested too deep, a member named twice
 *   unknown_op    no such op
 *   bad_member    a member is missing, or has a wrong type or value; the text names it
 *   unknown_api   hello.api is no version this gateway speaks
 *   forbidden     the token's scopes do not allow it
 *   limit         one of welcome.limits is reached, or the text names it
 *   duplicate_id  a subscription with this id exists
 *   unknown_id    no subscription has this id
 *   bad_token     the token of auth cannot take the place of the one in use
 *   ignored       auth, which has no answer when it is taken, has members that nobody reads */
#pragma once

static const char protocol_json[] = "runs.v1.json";
static const char protocol_msgpack[] = "runs.v1.msgpack";

/* The close code's class says what a client does next, so that it needs no list. */
enum protocol_close {
    /* 40xx: do not reconnect. */
    CLOSE_BAD_MESSAGE = 4000,
    CLOSE_BAD_TOKEN = 4001,
    CLOSE_FORBIDDEN = 4003,
    CLOSE_LIMIT = 4004,
    CLOSE_VERSION = 4005,
    /* 41xx: reconnect with back-off and jitter. */
    CLOSE_INTERNAL = 4100,
    CLOSE_TOKEN_EXPIRED = 4101, /* with a new token */
    CLOSE_TOO_FAR_BEHIND = 4102,
    CLOSE_OVERLOAD = 4103, /* also: the environment has too many connections */
    /* 42xx: reconnect at once. */
    CLOSE_DRAIN = 4200,
    CLOSE_MOVED = 4201,
};

enum protocol_reconnect { RECONNECT_NEVER, RECONNECT_LATER, RECONNECT_NOW };

/* For every code a client can see: ours by class, 1001 and 1012 as 42xx, 1006, 1011 and
 * 1013 as 41xx, all others (RFC 6455 §7.4.1) mean that reconnecting would not help. */
static inline enum protocol_reconnect protocol_reconnect(int close_code)
{
    switch (close_code) {
    case 1001:
    case 1012: return RECONNECT_NOW;
    case 1006:
    case 1011:
    case 1013: return RECONNECT_LATER;
    default: break;
    }
    int class = close_code / 100;
    return class == 42 ? RECONNECT_NOW : class == 41 ? RECONNECT_LATER : RECONNECT_NEVER;
}

/* Defaults; welcome.limits tells those in force that a client must heed. */
enum {
    PROTOCOL_SUBSCRIPTIONS = 256,    /* per connection */
    PROTOCOL_WATCHES = 16,           /* per connection; subscriptions with counts, too */
    PROTOCOL_WATCH_LIMIT = 200,      /* rows of a watch */
    PROTOCOL_WATCHED = 1024,         /* of an environment: different filters, long ones
                                      * several times: limit */
    PROTOCOL_TAGS = 16,              /* per filter */
    PROTOCOL_FILTER_BYTES = 262144,  /* per connection: tags and tasks of all filters */
    PROTOCOL_MESSAGE_BYTES = 65536,  /* in */
    PROTOCOL_STRANGER_BYTES = 20480, /* in, while no token has come: 1009 */
    PROTOCOL_FRAGMENTS = 64,         /* per message, empty ones count */
    PROTOCOL_MESSAGES_PER_S = 50,    /* in; above it and the burst: 4103 */
    PROTOCOL_BURST = 200,
    PROTOCOL_FRAME_BYTES = 65536, /* out; a single larger run alone */
    PROTOCOL_HELLO_MS = 10000,    /* until the first message, when it brings the token */
    PROTOCOL_PING_MS = 25000,     /* between WebSocket pings */
    PROTOCOL_STALL_MS = 60000,    /* nothing taken and nothing said for so long */
    PROTOCOL_EXPIRING_MS = 30000, /* before the token's end: expiring */
    PROTOCOL_EXPIRED_GRACE_MS = 10000, /* after it: 4101 */
};
