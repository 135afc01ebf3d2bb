/* protocol.h - runs.v1: the messages between the gateway and its WebSocket clients.
 *
 *   GET /realtime/v1/ws            upgrade; Authorization: Bearer, ?token= or hello.token
 *   Sec-WebSocket-Protocol         runs.v1.json (text) or runs.v1.msgpack (binary);
 *                                  none: JSON
 *
 * A message is one object (map). The client's messages are JSON text in both subprotocols.
 * In msgpack, a time is the timestamp extension (type -1); payload, output, metadata and
 * error are a str that holds their JSON text; everything else is the plain counterpart of
 * JSON. Each side ignores members that it does not know. The gateway reports which of the
 * client's members it ignored (at most 16 names, 1 KiB): welcome, ok and end, the replies
 * to hello, sub and unsub, list them in ignored; welcome also lists those of the upgrade's
 * query. In the client's messages, null stands for absent.
 *
 * Client:
 *   {"op":"hello","token":"…","fields":["-payload"],"every":0,"api":"2025-07-16"}
 *   {"op":"sub","id":1,"run":"run_x" | "batch":"batch_x" | "tags":["a","b"] | "all":true,
 *        "task":["t"],"since":"24h" | ISO time,"limit":200,"from":[epoch,seq,base],
 *        "counts":true}
 *   {"op":"watch","id":1,"filter":{…},"limit":100,"counts":true}
 *   {"op":"unsub","id":1}      {"op":"auth","token":"…"}
 *
 *   hello: all members are optional, except the token if the upgrade had none. fields: the
 *   wanted ones, or with a minus those to leave out; id, taskIdentifier, status, createdAt,
 *   updatedAt, tags and batchId are always sent, realtimeStreams and queue only if named.
 *   every: the least time between two patches, in ms. api: the vocabulary of statuses;
 *   without it that of SDK 3.x.
 *   sub: exactly one of run, batch, tags (a run must have all of them) and all. task, since
 *   (created at or after) and limit (the newest ones, at subscribe time) narrow it. from
 *   continues where another connection ended.
 *   watch: filter has the names and values of a list of runs (status, taskIdentifier,
 *   version, tag, queue, machine, region, batch, schedule, bulkAction, isTest, from, to,
 *   period). Without from, to and period it covers the last week. limit is at most 200.
 *   counts: also send the number of runs by status.
 *
 * Server:
 *   {"op":"welcome","epoch":"9f3c","seq":S,"env":"…","fields":[…],"expires":time?,
 *        "limits":{"subscriptions":…,"tags":…,"messageBytes":…,"messagesPerSecond":…,
 *                  "burst":…,"watches":…,"watchLimit":…},"ignored":["…"]?}
 *   {"op":"ok","id":1,"mode":"snapshot" | "resume","count":42?,"since":time?,
 *        "ignored":["…"]?}
 *   {"op":"rows","id":1,"seq":S,"more":true?,"rows":[R,…]}   one subscription catches up
 *   {"op":"patch","seq":S,"more":true?,"rows":[R,…]}         all live ones; each run once
 *   {"op":"list","id":1,"seq":S,"begin":true?,"more":true?,"rows":[R,…]}   of a watch
 *   {"op":"counts","id":1,"seq":S,"byStatus":{"EXECUTING":3,…},"total":N}
 *   {"op":"end","id":1,"code":"…"?,"ignored":["…"]?}      reply to unsub, or ended by the
 *                                         server
 *   {"op":"floor","updatedAt":time}       final runs last changed before this are gone
 *   {"op":"error","id":1?,"code":"…","message":"…"}
 *   {"op":"ping","seq":S}                 you are in sync up to here
 *   {"op":"expiring","in":ms}             refresh the token with auth
 *   {"op":"drain","in":ms}                wait this long, open another connection, then
 *                                         close this one. If this one is closed first,
 *                                         still wait
 *
 *   R = [runId, version, {changed fields}]       absolute values, null: cleared
 *   R = [runId, version, {all fields}, 1]        replaces what the client has of the run
 *   R = [runId, version, null, 2]                the run leaves the watch (list only)
 *
 * A watch holds the newest runs of a filter, those with the highest ids. A run leaves it
 * when its status no longer matches, when a newer run takes its place, or when it falls out
 * of the period. A watch has no position. begin, sent after ok and whenever the client was
 * too slow for differences, makes the client discard what it had of the watch; on a new
 * connection the client sends watch again. A frame without more makes the client complete:
 * its runs are those of the list at seq. A row is accepted or ignored by its version, as
 * elsewhere, but compared only with the rows of its watch. Counts cover all runs of the
 * filter, are exact at seq, complete each time, and sent at most four times a second; a
 * status that is not named has 0.
 *
 * Rules for the client:
 * - Ignore a row whose version is not above the one you have, unless the row is whole and
 *   of the same version. A jump by k + 1 means that k states were skipped, because the
 *   client was slow.
 * - Keep runs by id and file them under your subscriptions by the same filters. A run never
 *   leaves a filter. The ok of a subscription with a limit has since, the time from which
 *   runs count, also those that came by other subscriptions. If it has none, the since of
 *   the sub counts. After unsub, continue to apply frames until end.
 * - Keep one position: epoch of welcome; seq of the last frame; base, the seq of the last
 *   frame without more. patch and ping move it, and so does a rows without more, but only
 *   while every subscription that was complete before is live again. On a new connection,
 *   send the three as from. In place of a limit, send the since that its ok named, if any.
 *   A subscription that was not complete starts without from.
 * - welcome may come again, if the gateway had to load its runs again. Then no subscription is
 *   live, and each gets ok and rows, and each watch its list, without another sub or watch. If
 *   the epoch has changed, the database was replaced: forget the position, and the versions of
 *   all rows.
 * - At the end of a snapshot (mode of ok), forget the runs of that filter that were not in
 *   it, unless another live filter holds them.
 * - The response to a write has x-runs-seq: epoch.seq. A frame without more at or above it
 *   shows the write.
 *
 * Codes of error and end; each comes with a text that explains what is wrong:
 *   bad_message   not JSON, not an object, nested too deeply, or a member is named twice
 *   unknown_op    no such op
 *   bad_member    a member is missing, or has a wrong type or value; the text names it
 *   unknown_api   hello.api is not a version that this gateway supports
 *   forbidden     the token's scopes do not allow it
 *   limit         a limit of welcome.limits, or one that the text names, is reached
 *   duplicate_id  a subscription with this id exists
 *   unknown_id    no subscription has this id
 *   bad_token     the token of auth cannot replace the one in use
 *   ignored       auth, which gets no reply when it succeeds, has unknown members */
#pragma once

static const char protocol_json[] = "runs.v1.json";
static const char protocol_msgpack[] = "runs.v1.msgpack";

/* The class of a close code decides what a client does next, so it needs no list of
 * codes. */
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

/* How to react to any close code that a client can see. Our own go by class; 1001 and 1012
 * count as 42xx; 1006, 1011 and 1013 as 41xx. After any other code (RFC 6455 §7.4.1),
 * reconnecting would not help. */
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

/* Defaults. welcome.limits has those in force that a client must respect. */
enum {
    PROTOCOL_SUBSCRIPTIONS = 256,   /* per connection */
    PROTOCOL_WATCHES = 16,          /* per connection, with counts of subscriptions */
    PROTOCOL_WATCH_LIMIT = 200,     /* rows of a watch */
    PROTOCOL_WATCHED = 1024,        /* different queries watched in one environment; one
                                      * that names many values counts several times */
    PROTOCOL_TAGS = 16,             /* per filter */
    PROTOCOL_FILTER_BYTES = 262144, /* per connection: tags and tasks of all filters */
    PROTOCOL_MESSAGE_BYTES = 65536, /* incoming */
    PROTOCOL_UNAUTHENTICATED_BYTES = 20480, /* incoming, before a token has come: 1009 */
    PROTOCOL_FRAGMENTS = 64,                /* per message; empty ones count */
    PROTOCOL_MESSAGES_PER_S = 50,           /* incoming; above it and the burst: 4103 */
    PROTOCOL_BURST = 200,
    PROTOCOL_FRAME_BYTES = 65536, /* outgoing; a single larger run has a frame of its own */
    PROTOCOL_HELLO_MS = 10000,    /* until the first message, if that brings the token */
    PROTOCOL_PING_MS = 25000,     /* between WebSocket pings */
    PROTOCOL_STALL_MS = 60000,    /* the client reads nothing and sends nothing */
    PROTOCOL_EXPIRING_MS = 30000, /* before the token expires: expiring */
    PROTOCOL_EXPIRED_GRACE_MS = 10000, /* after it expired: 4101 */
};
