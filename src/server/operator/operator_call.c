/* operator_call.c - carries out a line of an operator, or sends it to the leader. */
#include "server/operator/operator_call.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/vault/secret.h"
#include "server/upkeep/key_rotation.h"
#include "store/lead/leading.h"

struct operators {
    struct operators_options options;
    bool leads;
    struct rotate *rotate;
    struct leading *leading; /* NULL: this gateway does not lead */
    bool has_ended;
    unsigned calls; /* in progress; the last one frees this struct after the end */
};

static void let_go(struct operators *operators)
{
    if (operators->has_ended && !operators->calls)
        free(operators);
}

bool operator_call_is_busy(const struct operator_call *call)
{
    return call->out != NULL;
}

void operator_call_finish(struct operator_call *call)
{
    if (call->text)
        secret_wipe(call->text, call->text_len);
    free(call->text);
    call->text = NULL;
}

/* ---- the text ---- */

/* If nothing was printed (an empty list), the text is the zero at its end: an empty response
 * would look as if the gateway had exited. */
static void complete(struct operator_call *call)
{
    struct operators *operators = call->operators;
    fclose(call->out);
    call->out = NULL;
    operators->calls--;
    let_go(operators);
    call->done(call, (struct slice){ call->text, call->text_len ? call->text_len : 1 });
}

static void end(struct operator_call *call, enum err status, const char *reason)
{
    if (status) {
        rewind(call->out);
        fprintf(call->out, "%s%s\n",
                status == ERR_USAGE ? OPERATOR_USAGE_MARK : OPERATOR_ERROR_MARK, reason);
    }
    complete(call);
}

/* ---- at a gateway that leads ---- */

static void on_rotated(void *owner, enum err status, const char *text)
{
    struct operator_call *call = owner;
    fprintf(call->out, "%s\n", text);
    log_audit("vault rotate", "by", call->actor, "result", text, NULL);
    end(call, status, text);
}

static void rotate(struct operator_call *call, struct slice key)
{
    struct failure why;
    enum err refused =
        call->operators->rotate
            ? rotate_begin(call->operators->rotate, key, on_rotated, call, &why)
            : explain(&why, ERR_DRAINING, "the gateway is not ready");
    if (!refused)
        return;
    log_audit("vault rotate", "by", call->actor, "result", why.text, NULL);
    end(call, refused, why.text);
}

/* The response comes before the end: this process starts again when it has lost the lead. */
static void pass_lead(struct operator_call *call, struct slice name)
{
    struct failure why;
    struct leading *leading = call->operators->leading;
    char *text = mem_text(name);
    enum err refused = leading ? leading_pass(leading, text, &why)
                               : explain(&why, ERR_DRAINING, "the gateway is not ready");
    if (!refused)
        fprintf(call->out, "the lead is handed over to %s\n", text);
    log_audit("lead", "by", call->actor, "to", text, "result", refused ? why.text : "ok",
              NULL);
    free(text);
    end(call, refused, why.text);
}

static void list_gateways(struct operator_call *call, bool as_json)
{
    const struct operators_options *options = &call->operators->options;
    bool is_ready = options->list && call->operators->leading;
    if (is_ready)
        options->list(options->list_owner, as_json, call->out);
    end(call, is_ready ? OK : ERR_DRAINING, "the gateway is not ready");
}

static void on_command(struct account_command *command, enum err status)
{
    struct operator_call *call = container_of(command, struct operator_call, command);
    end(call, status, command->write.why.text);
}

static enum err choose_change(const struct subcommand *commands,
                              struct account_command *command)
{
    const struct subcommand *row;
    struct failure *why = &command->write.why;
    enum err refused = subcommand_read(commands, command->words, command->word_count, &row,
                                       &command->said, why);
    if (!refused && !row->change)
        refused = explain(why, ERR_USAGE, "%s: unknown command of the gateway", row->words);
    if (!refused)
        command->change = row->change;
    return refused;
}

static void run_command(struct operator_call *call, struct slice line)
{
    struct account_command *command = &call->command;
    const struct operators_options *options = &call->operators->options;
    command->accounts = options->accounts;
    command->writer = options->writer;
    command->url = options->url;
    command->out = call->out;
    command->actor = call->actor;
    command->done = on_command;
    enum err refused = account_command_read(command, line);
    if (!refused)
        refused = choose_change(options->commands, command);
    if (!refused) {
        account_command_begin(command);
        return;
    }
    struct failure why = command->write.why;
    account_command_forget(command);
    end(call, refused, why.text);
}

static void carry_out(struct operator_call *call, struct slice line)
{
    static const char rotation[] = "vault rotate ", lead[] = "lead ";
    if (slice_starts(line, "["))
        run_command(call, line);
    else if (slice_starts(line, rotation))
        rotate(call, slice_from(line, sizeof(rotation) - 1));
    else if (slice_starts(line, lead))
        pass_lead(call, slice_from(line, sizeof(lead) - 1));
    else if (slice_is(line, "gateways") || slice_is(line, "gateways json"))
        list_gateways(call, slice_is(line, "gateways json"));
    else
        end(call, ERR_INVALID, "unknown command of the gateway");
}

/* ---- at a gateway that follows ---- */

static void on_forwarded(struct leader_command *command, struct slice output,
                         const char *why)
{
    struct operator_call *call = container_of(command, struct operator_call, forwarded);
    if (why) {
        end(call, ERR_DRAINING, why);
        return;
    }
    fwrite(output.ptr, 1, output.len, call->out);
    complete(call);
}

/* The first line names the actor (peer_commands.c). */
static void forward(struct operator_call *call, struct slice line)
{
    const struct operators_options *options = &call->operators->options;
    struct failure why;
    struct buf text = { 0 };
    buf_print(&text, "%s at %s\n", call->actor, options->name);
    buf_add(&text, line);
    call->forwarded.done = on_forwarded;
    enum err refused =
        options->send
            ? options->send(options->send_owner, &call->forwarded, buf_slice(&text), &why)
            : explain(&why, ERR_DRAINING, "the gateway is not ready");
    secret_forget_buf(&text);
    if (refused)
        end(call, refused, why.text);
}

/* ---- calls ---- */

void operator_call_begin(struct operator_call *call, struct operators *operators)
{
    call->operators = operators;
    call->out = open_memstream(&call->text, &call->text_len);
    if (!call->out)
        mem_exhausted();
    struct buf line = { 0 };
    buf_add_text(&line, call->line);
    secret_wipe(call->line, sizeof(call->line)); /* it may contain a key */
    operators->calls++;
    if (operators->leads)
        carry_out(call, buf_slice(&line));
    else
        forward(call, buf_slice(&line));
    secret_forget_buf(&line);
}

struct operators *operators_create(const struct operators_options *options)
{
    struct operators *operators = mem_new(struct operators);
    operators->options = *options;
    return operators;
}

void operators_lead(struct operators *operators)
{
    operators->leads = true;
}

void operators_serve(struct operators *operators, struct rotate *rotate,
                     struct leading *leading)
{
    operators->leads &= rotate || leading;
    operators->rotate = rotate;
    operators->leading = leading;
}

void operators_destroy(struct operators *operators)
{
    if (!operators)
        return;
    operators->options.accounts = NULL;
    operators_serve(operators, NULL, NULL);
    operators->has_ended = true;
    let_go(operators);
}
