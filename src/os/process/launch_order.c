/* launch_order.c - writes and reads the order of a launcher. */
#include "os/process/launch_order.h"

#include "base/mem.h"
#include "base/text.h"

static void add_text(struct buf *out, const char *text)
{
    buf_add(out, (struct slice){ text, strlen(text) + 1 });
}

static void add_number(struct buf *out, int64_t number)
{
    buf_add_number(out, number);
    buf_add_char(out, '\0');
}

static void add_texts(struct buf *out, const char *const *texts)
{
    int64_t count = 0;
    while (texts && texts[count])
        count++;
    add_number(out, count);
    for (int64_t i = 0; i < count; i++)
        add_text(out, texts[i]);
}

void launch_order_write(const struct launch_order *order, struct buf *out)
{
    const struct process_options *options = &order->options;
    add_number(out, order->spawner);
    add_number(out, options->user.uid);
    add_number(out, options->user.gid);
    add_number(out, (int64_t)options->limits.open_files);
    add_number(out, (int64_t)options->limits.processes);
    add_number(out, (int64_t)options->limits.address_space);
    add_number(out, options->namespaces);
    add_number(out, options->oom_score_adj);
    add_text(out, options->program);
    add_text(out, options->directory ? options->directory : "/");
    add_text(out, options->cgroup ? options->cgroup : "");
    add_text(out, options->temporary ? options->temporary : "");
    add_texts(out, options->arguments);
    add_texts(out, options->environment);
}

static bool take_text(struct slice *rest, const char **text)
{
    const char *end = rest->len ? memchr(rest->ptr, '\0', rest->len) : NULL;
    if (!end)
        return false;
    *text = rest->ptr;
    *rest = slice_from(*rest, (size_t)(end - rest->ptr) + 1);
    return true;
}

static bool take_number(struct slice *rest, int64_t *number)
{
    const char *text;
    return take_text(rest, &text) && text_to_i64(slice_of(text), number) == OK;
}

static bool take_texts(struct slice *rest, const char *const **texts)
{
    int64_t count;
    if (!take_number(rest, &count) || count < 0 || (uint64_t)count > rest->len)
        return false;
    const char **all = mem_new_array(const char *, (size_t)count + 1);
    *texts = all;
    for (int64_t i = 0; i < count; i++)
        if (!take_text(rest, &all[i]))
            return false;
    return true;
}

bool launch_order_read(struct slice bytes, struct launch_order *order)
{
    struct process_options *options = &order->options;
    int64_t numbers[8];
    for (size_t i = 0; i < 8; i++)
        if (!take_number(&bytes, &numbers[i]))
            return false;
    order->spawner = (pid_t)numbers[0];
    options->user = (struct process_user){ (uid_t)numbers[1], (gid_t)numbers[2] };
    options->limits = (struct process_limits){ (uint64_t)numbers[3], (uint64_t)numbers[4],
                                               (uint64_t)numbers[5] };
    options->namespaces = (enum process_namespaces)numbers[6];
    options->oom_score_adj = (int)numbers[7];
    return take_text(&bytes, &options->program) && take_text(&bytes, &options->directory) &&
           take_text(&bytes, &options->cgroup) && take_text(&bytes, &options->temporary) &&
           take_texts(&bytes, &options->arguments) &&
           take_texts(&bytes, &options->environment) && !bytes.len;
}
