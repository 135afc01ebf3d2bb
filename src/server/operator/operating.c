/* operating.c - gives the lines of operators to their call, wherever they come from. */
#include "server/operator/operating.h"

#include <stdlib.h>

#include "base/mem.h"
#include "server/operator/admin_socket.h"
#include "server/operator/peer_commands.h"

struct operating {
    struct loop *loop;
    struct operating_options options;
    struct operators *operators;
    struct peer_commands *commands;
    struct admin *admin;      /* NULL: it does not listen */
    struct gateway_list list; /* while this gateway leads */
};

/* ---- the list of gateways ---- */

static void list_gateways(void *owner, bool as_json, FILE *out)
{
    struct operating *operating = owner;
    struct buf json = { 0 };
    if (!as_json) {
        gateway_list_print(&operating->list, out);
        return;
    }
    gateway_list_add(&operating->list, true, &json);
    buf_add_char(&json, '\n');
    fwrite(json.ptr, 1, json.len, out);
    buf_finish(&json);
}

/* A query of an operator, which the leader answers, with addresses. */
struct asked {
    struct operator_call call;
    struct gateways_query *query;
};

static void on_answered(struct operator_call *call, struct slice text)
{
    struct asked *asked = container_of(call, struct asked, call);
    struct gateways_query *query = asked->query;
    struct slice error = SLICE(OPERATOR_ERROR_MARK);
    if (slice_starts(text, OPERATOR_ERROR_MARK)) {
        char *why = mem_text(slice_trim(slice_from(text, error.len)));
        query->done(query, (struct slice){ 0 }, why);
        free(why);
    } else {
        query->done(query, text, NULL);
    }
    operator_call_finish(call);
    free(asked);
}

static void ask(struct operating *operating, struct gateways_query *query)
{
    struct asked *asked = mem_new(struct asked);
    asked->query = query;
    asked->call.done = on_answered;
    snprintf(asked->call.line, sizeof(asked->call.line), "gateways json");
    snprintf(asked->call.actor, sizeof(asked->call.actor), "GET /gateways");
    operator_call_begin(&asked->call, operating->operators);
}

void operating_list(struct operating *operating, struct gateways_query *query)
{
    struct buf json = { 0 };
    if (query->has_addresses) {
        ask(operating, query);
        return;
    }
    if (!operating->list.leading) {
        query->done(query, (struct slice){ 0 }, "the gateway is not ready");
        return;
    }
    gateway_list_add(&operating->list, false, &json);
    query->done(query, buf_slice(&json), NULL);
    buf_finish(&json);
}

/* ---- followers ---- */

void operating_follow(struct operating *operating, const struct source *source)
{
    operating->list.source = source;
}

/* They are stored with those of this gateway. */
static void note_uses(struct operating *operating, const struct repl_uses *uses)
{
    int64_t now_ms = loop_wall_ms(operating->loop);
    for (size_t i = 0; i < uses->count; i++)
        accounts_note_use(operating->options.accounts, uses->list[i].hash,
                          uses->list[i].used_at, now_ms);
}

void operating_take(struct operating *operating, struct source_follower *from,
                    const struct repl_frame *frame)
{
    if (frame->kind == REPL_COMMAND)
        peer_commands_take(operating->commands, from, &frame->command);
    else if (frame->kind == REPL_USES)
        note_uses(operating, &frame->uses);
}

void operating_leave(struct operating *operating, const struct source_follower *follower)
{
    peer_commands_leave(operating->commands, follower);
}

/* ---- the lead ---- */

void operating_lead(struct operating *operating)
{
    operators_lead(operating->operators);
}

void operating_serve(struct operating *operating, struct rotate *rotate,
                     struct leading *leading)
{
    operators_serve(operating->operators, rotate, leading);
    operating->list.leading = leading;
    if (leading)
        operating->list.since_ms = loop_wall_ms(operating->loop);
}

/* ---- making ---- */

static struct operators *create_operators(struct operating *operating)
{
    const struct operating_options *options = &operating->options;
    const struct operators_options operators = { .commands = options->commands,
                                                 .accounts = options->accounts,
                                                 .writer = options->writer,
                                                 .url = options->url,
                                                 .name = options->name,
                                                 .send = options->send,
                                                 .send_owner = options->owner,
                                                 .list = list_gateways,
                                                 .list_owner = operating };
    return operators_create(&operators);
}

struct operating *operating_create(struct loop *loop,
                                   const struct operating_options *options)
{
    struct operating *operating = mem_new(struct operating);
    operating->loop = loop;
    operating->options = *options;
    operating->operators = create_operators(operating);
    operating->list = (struct gateway_list){ .loop = loop,
                                             .name = options->name,
                                             .peer_url = options->peer_url };
    const struct peer_commands_options commands = { .vault = options->vault,
                                                    .operators = operating->operators,
                                                    .send = options->reply,
                                                    .owner = options->owner };
    operating->commands = peer_commands_create(&commands);
    return operating;
}

enum err operating_listen(struct operating *operating, const char *path,
                          struct failure *why)
{
    return operating->admin ? OK
                            : admin_create(loop_uv(operating->loop), path,
                                           operating->operators, &operating->admin, why);
}

void operating_destroy(struct operating *operating)
{
    if (!operating)
        return;
    admin_destroy(operating->admin);
    peer_commands_destroy(operating->commands);
    operators_destroy(operating->operators);
    free(operating);
}
