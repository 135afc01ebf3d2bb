/* linger.c - one echo for each topic and view, until its timer ends it. */
#include "core/live/linger.h"

#include "base/loop.h"
#include "base/mem.h"

void echo_end(struct echo *echo)
{
    struct environment *env = echo->env;
    timers_clear(loop_timers(env->loop), &echo->timer);
    list_remove(&echo->beside);
    list_remove(&echo->link);
    env->hub.feeds--;
    hub_leave(&env->hub, echo->topic);
    view_release(echo->view);
    free(echo);
}

static void on_time(struct timer *timer)
{
    struct echo *echo = container_of(timer, struct echo, timer);
    struct loop *loop = echo->env->loop;
    int64_t left = echo->until_ms - loop_now_ms(loop);
    if (left > 0)
        loop_set_timer(loop, timer, timer->kind, left);
    else
        echo_end(echo);
}

static struct echo *find(const struct topic *topic, const struct view *view)
{
    list_each (link, &topic->echoes) {
        struct echo *echo = container_of(link, struct echo, beside);
        if (echo->view == view)
            return echo;
    }
    return NULL;
}

void echo_leave(struct feed *feed, int64_t ms, struct list *echoes)
{
    struct list *subs = list_empty(&feed->live) ? &feed->catching : &feed->live;
    struct topic *topic = container_of(subs->next, struct subscription, link)->topic;
    struct environment *env = feed->env;
    struct echo *echo = find(topic, feed->view);

    if (!echo) {
        echo = mem_new(struct echo);
        *echo = (struct echo){ .env = env, .topic = topic, .view = feed->view };
        list_append(&topic->echoes, &echo->beside);
        list_append(echoes, &echo->link);
        view_use(echo->view);
        env->hub.feeds++;
        loop_set_timer(env->loop, &echo->timer,
                       timers_kind(loop_timers(env->loop), on_time), ms);
    }
    echo->until_ms = loop_now_ms(env->loop) + ms;
    feed_finish(feed);
}
