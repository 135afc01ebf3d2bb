/* kept_view.c - one kept view for each topic and view, until its timer expires. */
#include "core/live/kept_view.h"

#include "base/loop.h"
#include "base/mem.h"

void kept_view_end(struct kept_view *kept_view)
{
    struct environment *env = kept_view->env;
    timers_clear(loop_timers(env->loop), &kept_view->timer);
    list_remove(&kept_view->topic_link);
    list_remove(&kept_view->link);
    env->hub.feeds--;
    hub_leave(&env->hub, kept_view->topic);
    view_release(kept_view->view);
    free(kept_view);
}

static void on_time(struct timer *timer)
{
    struct kept_view *kept_view = container_of(timer, struct kept_view, timer);
    struct loop *loop = kept_view->env->loop;
    int64_t left = kept_view->until_ms - loop_now_ms(loop);
    if (left > 0)
        loop_set_timer(loop, timer, timer->kind, left);
    else
        kept_view_end(kept_view);
}

static struct kept_view *find(const struct topic *topic, const struct view *view)
{
    list_each (link, &topic->kept_views) {
        struct kept_view *kept_view = container_of(link, struct kept_view, topic_link);
        if (kept_view->view == view)
            return kept_view;
    }
    return NULL;
}

void feed_finish_keeping_view(struct feed *feed, int64_t ms, struct list *kept_views)
{
    struct list *subs = list_empty(&feed->live) ? &feed->catching : &feed->live;
    struct topic *topic = container_of(subs->next, struct subscription, link)->topic;
    struct environment *env = feed->env;
    struct kept_view *kept_view = find(topic, feed->view);

    if (!kept_view) {
        kept_view = mem_new(struct kept_view);
        *kept_view = (struct kept_view){ .env = env, .topic = topic, .view = feed->view };
        list_append(&topic->kept_views, &kept_view->topic_link);
        list_append(kept_views, &kept_view->link);
        view_use(kept_view->view);
        env->hub.feeds++;
        loop_set_timer(env->loop, &kept_view->timer,
                       timers_kind(loop_timers(env->loop), on_time), ms);
    }
    kept_view->until_ms = loop_now_ms(env->loop) + ms;
    feed_finish(feed);
}
