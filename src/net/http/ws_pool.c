/* ws_pool.c - a list of those that wait to be lent. */
#include "net/http/ws_pool.h"

#include "net/http/server_state.h"

enum { KEPT_MESSAGE = 16 * 1024 }; /* capacity that a pooled one keeps */

struct ws_input *ws_pool_take(struct server *server)
{
    if (!list_empty(&server->inputs)) {
        server->input_count--;
        return container_of(list_take(&server->inputs), struct ws_input, link);
    }
    struct ws_input *input = ws_input_create();
    input->fragments_max = server->options.ws_fragments_max;
    return input;
}

/* After a fault wslay may be anywhere in a frame: such a one is not lent again. */
void ws_pool_give_back(struct server *server, struct ws_input *input)
{
    if (server->input_count == SERVER_POOL_MAX || !ws_input_idle(input)) {
        ws_input_destroy(input);
        return;
    }
    if (input->message.capacity > KEPT_MESSAGE)
        buf_finish(&input->message);
    list_append(&server->inputs, &input->link);
    server->input_count++;
}
