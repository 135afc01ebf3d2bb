/* Queues with several audiences: each gets its own items, whatever else is before them.
 * They share the slots. */
#include <stdio.h>

#include "core/queues/queue.h"
#include "tests/support/world/seat.h"
#include "tests/support/world/sim.h"
#include "tests/support/world/unit.h"

enum { ITEMS = 24, AUDIENCES = 3, QUEUES = 3, KEYS = 2, STEPS = 20000 };

struct job {
    struct queue_item item; /* first */
    char id[8];
    unsigned queue, key;
    bool waiting, running;
};

struct scene {
    struct queues queues;
    struct job jobs[ITEMS];
    bool paused[QUEUES];
    uint32_t limits[QUEUES];
    struct draws draws;
};

static const char *const queue_names[QUEUES] = { "a", "b", "c" };
static const char *const key_names[KEYS] = { "", "k" };

static struct slice job_id(const struct queue_item *item)
{
    return slice_of(((const struct job *)item)->id);
}

static void put_to_wait(struct scene *scene, struct job *job)
{
    struct draws *draws = &scene->draws;
    job->queue = draw(draws, QUEUES);
    job->key = draw(draws, KEYS);
    job->waiting = true;
    job->running = false;
    job->item.audience = (uint16_t)draw(draws, AUDIENCES);
    queues_wait(&scene->queues, &job->item,
                SEAT(slice_of(queue_names[job->queue]), slice_of(key_names[job->key])),
                (int64_t)draw(draws, 20));
}

static void put_to_run(struct scene *scene, struct job *job)
{
    job->waiting = false;
    job->running = true;
    queues_run(&scene->queues, &job->item,
               SEAT(slice_of(queue_names[job->queue]), slice_of(key_names[job->key])));
}

static void put_away(struct scene *scene, struct job *job)
{
    job->waiting = job->running = false;
    queues_leave(&scene->queues, &job->item);
}

static void set_up(struct scene *scene)
{
    unsigned queue = draw(&scene->draws, QUEUES);
    struct queue_settings settings = { .paused = draw(&scene->draws, 3) == 0 };
    scene->paused[queue] = settings.paused;
    queues_configure(&scene->queues, slice_of(queue_names[queue]), &settings);
    scene->limits[queue] = draw(&scene->draws, 4);
    queues_change_limit(&scene->queues, slice_of(queue_names[queue]), scene->limits[queue]);
}

static unsigned count_running(const struct scene *scene, const struct job *in_lane_of)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ITEMS; i++) {
        const struct job *job = &scene->jobs[i];
        count += job->running && (!in_lane_of || (job->queue == in_lane_of->queue &&
                                                  job->key == in_lane_of->key));
    }
    return count;
}

static bool may_run(const struct scene *scene, const struct job *job)
{
    return job->waiting && !scene->paused[job->queue] &&
           count_running(scene, job) < scene->limits[job->queue] &&
           count_running(scene, NULL) < scene->queues.limit;
}

static unsigned count_waiting(const struct scene *scene, uint32_t audience)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ITEMS; i++)
        count += scene->jobs[i].waiting && scene->jobs[i].item.audience == audience;
    return count;
}

/* An item is offered exactly if one of its audience may run, and it is one that may. */
static void check(const struct scene *scene)
{
    for (uint32_t audience = 0; audience <= AUDIENCES; audience++) {
        const struct job *next = (const struct job *)queues_next(&scene->queues, audience);
        bool any = false;
        assert_int_equal(queues_waiting_for(&scene->queues, audience),
                         count_waiting(scene, audience));
        for (unsigned i = 0; i < ITEMS; i++)
            any |=
                scene->jobs[i].item.audience == audience && may_run(scene, &scene->jobs[i]);
        assert_int_equal(next != NULL, any);
        if (!next)
            continue;
        assert_int_equal(next->item.audience, audience);
        assert_true(may_run(scene, next));
        for (unsigned i = 0; i < ITEMS; i++) { /* the oldest of its lane */
            const struct job *job = &scene->jobs[i];
            if (job->waiting && job->item.audience == audience &&
                job->queue == next->queue && job->key == next->key)
                assert_true(job->item.position >= next->item.position);
        }
    }
}

static void each_audience_is_offered_its_own_items(void **state)
{
    static struct scene scene;
    (void)state;
    scene = (struct scene){ .draws = { 7 } };
    queues_init(&scene.queues, 5, job_id);
    for (unsigned i = 0; i < QUEUES; i++) {
        scene.limits[i] = 2;
        queues_set_limit(&scene.queues, slice_of(queue_names[i]), 2);
    }
    for (unsigned i = 0; i < ITEMS; i++)
        snprintf(scene.jobs[i].id, sizeof(scene.jobs[i].id), "r%02u", i);
    for (unsigned i = 0; i < STEPS; i++) {
        struct job *job = &scene.jobs[draw(&scene.draws, ITEMS)];
        struct job *next =
            (struct job *)queues_next(&scene.queues, draw(&scene.draws, AUDIENCES));
        switch (draw(&scene.draws, 8)) {
        case 0: set_up(&scene); break;
        case 1:
        case 2: put_away(&scene, job); break;
        case 3:
        case 4:
            if (next)
                put_to_run(&scene, next);
            break;
        default: put_to_wait(&scene, job); break;
        }
        check(&scene);
    }
    for (unsigned i = 0; i < ITEMS; i++)
        put_away(&scene, &scene.jobs[i]);
    assert_null(queues_next(&scene.queues, 0));
    queues_finish(&scene.queues);
}

/* A hundred thousand items of an audience without workers do not slow others down: they are
 * neither visited nor moved. */
static void items_of_another_audience_cost_nothing(void **state)
{
    enum { MANY = 100000 };
    struct job *many = test_calloc(MANY + 1, sizeof(*many)), *own = &many[MANY];
    struct queues queues;
    (void)state;
    queues_init(&queues, 5, job_id);
    for (unsigned i = 0; i <= MANY; i++) {
        snprintf(many[i].id, sizeof(many[i].id), "%06u", i);
        many[i].item.audience = i == MANY;
        queues_wait(&queues, &many[i].item, SEAT(SLICE("q"), SLICE("")), i);
    }
    assert_ptr_equal(queues_next(&queues, 1), own);
    uint32_t first = many[0].item.place, last = many[MANY - 1].item.place;
    queues_leave(&queues, &own->item);
    assert_null(queues_next(&queues, 1));
    assert_int_equal(many[0].item.place, first);
    assert_int_equal(many[MANY - 1].item.place, last);
    assert_int_equal(queues.waiting, MANY);
    for (unsigned i = 0; i < MANY; i++)
        queues_leave(&queues, &many[i].item);
    queues_finish(&queues);
    test_free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_audience_is_offered_its_own_items),
        cmocka_unit_test(items_of_another_audience_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
