/* token_wait.c - keeps the messages in one buffer. */
#include "api/realtime/token_wait.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct token_waiting *token_wait_begin(struct certainty *certainty, struct slice text,
                                       void (*fn)(struct certainty_waiter *confirming),
                                       void *owner)
{
    struct token_waiting *wait = mem_new(struct token_waiting);
    wait->owner = owner;
    wait->until = loop_now_ms(certainty->loop) + TOKEN_WAIT_MS;
    certainty_waiter_init(&wait->confirming, fn);
    token_wait_add(wait, text);
    certainty_confirm(certainty, &wait->confirming, NULL);
    return wait;
}

bool token_wait_add(struct token_waiting *wait, struct slice text)
{
    if (wait->texts.len && wait->texts.len + text.len > TOKEN_WAIT_BYTES)
        return false;
    buf_add(&wait->texts, (struct slice){ (const char *)&text.len, sizeof(text.len) });
    buf_add(&wait->texts, text);
    return true;
}

bool token_wait_take(struct token_waiting *wait, struct slice *text)
{
    const char *next = wait->texts.ptr + wait->taken;
    if (wait->taken == wait->texts.len)
        return false;
    memcpy(&text->len, next, sizeof(text->len));
    text->ptr = next + sizeof(text->len);
    wait->taken += sizeof(text->len) + text->len;
    return true;
}

void token_wait_end(struct token_waiting *wait)
{
    if (!wait)
        return;
    certainty_forget(&wait->confirming);
    buf_finish(&wait->texts);
    free(wait);
}
