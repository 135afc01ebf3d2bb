/* One pointer says which version is current; everything else follows from it. That holds
 * after an interrupted promotion, two at once, and a rollback. */
#include "api/registration/promotion.h"

#include "api/registration/registration.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/fleet/versions.h"
#include "tests/support/fakes/fake_store.h"
#include "tests/support/world/life.h"
#include "tests/support/world/unit.h"

/* Each version here has its own task, schedule and limit of the queue "common". */
#define BODY(n)                                                                            \
    "{\"metadata\":{\"contentHash\":\"hash-" n "\",\"tasks\":[{\"id\":\"task-" n           \
    "\"},{\"id\":\"tick-" n "\",\"triggerSource\":\"schedule\",\"schedule\":{\"cron\":\""  \
    "0 " n " * * *\"}}],\"queues\":[{\"name\":\"common\",\"concurrencyLimit\":" n          \
    "},{\"name\":\"own-" n "\",\"concurrencyLimit\":10" n "}]}}"

static const char *const versions[] = { NULL, "20260101.1", "20260101.2", "20260101.3" };
static const char *const bodies[] = { NULL, BODY("1"), BODY("2"), BODY("3") };

struct scene {
    struct loop *loop;
    struct fake_store *fake;
    struct life life;
    struct account *prod;
    struct environment *env;
};

static void enter_prod(struct scene *scene)
{
    struct account *account = NULL;
    while ((account = accounts_next(scene->life.accounts, account)))
        if (account->type == ENVIRONMENT_PROD)
            scene->prod = account;
    scene->env = engine_environment(scene->life.engine, scene->prod->number);
}

static void live(struct scene *scene)
{
    life_begin(&scene->life, scene->loop, fake_store_store(scene->fake), 0);
    assert_int_equal(scene->life.status, OK);
    enter_prod(scene);
}

static void restart(struct scene *scene)
{
    life_end(&scene->life);
    *fake_store_fault(scene->fake) = (struct fault){ 0 };
    live(scene);
}

static struct scene *open_scene(void)
{
    struct scene *scene = mem_new(struct scene);
    scene->loop = loop_create(NULL);
    loop_set_wall(scene->loop, INT64_C(1767225600000));
    scene->fake = fake_store_create(scene->loop);
    live(scene);
    life_start(&scene->life);
    return scene;
}

static void close_scene(struct scene *scene)
{
    life_end(&scene->life);
    fake_store_destroy(scene->fake);
    loop_destroy(scene->loop);
    free(scene);
}

/* ---- registering ---- */

static struct registration read_body(const char *body)
{
    struct registration_reader reader;
    struct registration registration = { 0 };
    struct failure why;
    registration_reader_init(&reader);
    assert_int_equal(registration_feed(&reader, slice_of(body), &why), OK);
    assert_int_equal(registration_end(&reader, &why), OK);
    while (!registration.worker)
        assert_int_equal(registration_read_next(&reader, &registration, &why), OK);
    registration_reader_finish(&reader);
    return registration;
}

struct writing {
    struct document_write write;
    bool done;
};

static void on_written(struct document_write *write, enum err status)
{
    assert_int_equal(status, OK);
    container_of(write, struct writing, write)->done = true;
}

/* Adds version n. deployment: "" is a plain registration, which was not promoted yet. */
static struct worker *add(struct scene *scene, int n, const char *deployment,
                          const char *external)
{
    struct registration registration = read_body(bodies[n]);
    struct worker *worker = registration.worker;
    struct writing writing = { 0 };
    snprintf(worker->id, sizeof(worker->id), "worker_%d", n);
    snprintf(worker->version, sizeof(worker->version), "%s", versions[n]);
    snprintf(worker->deployment, sizeof(worker->deployment), "%s", deployment);
    snprintf(worker->external_id, sizeof(worker->external_id), "%s", external);
    worker->created_at = n;
    struct bytes *name = registration_document_name(worker);
    struct bytes *body = registration_write(&registration);
    document_write_begin(scene->life.engine, scene->env->number, DOC_WORKER, name, body, 0,
                         &writing.write, on_written);
    bytes_unref(name);
    bytes_unref(body);
    life_wait(&scene->life, &writing.done);
    registration_apply(&registration, scene->env);
    registration_finish(&registration);
    return worker;
}

/* Applies the deployments' own documents, as a start does. */
static void deploy_all(const struct scene *scene)
{
    struct workers *workers = scene->env->fleet->workers;
    for (size_t i = 0; i < workers->count; i++)
        workers->all[i]->is_deployed = true;
}

static void add_deployed(struct scene *scene, int n)
{
    char id[16];
    snprintf(id, sizeof(id), "deployment_%d", n);
    versions_deployed(scene->env, add(scene, n, id, ""));
}

/* ---- promoting ---- */

struct promoting {
    struct promotion promotion;
    enum err status;
    bool done;
};

static void on_promoted(struct promotion *promotion, enum err status)
{
    struct promoting *op = container_of(promotion, struct promoting, promotion);
    assert_false(op->done);
    op->status = status;
    op->done = true;
}

static void begin(struct scene *scene, struct promoting *op, const char *version,
                  enum promotion_rule rule)
{
    *op = (struct promoting){ .promotion = { .rule = rule } };
    promotion_begin(&op->promotion, scene->life.api, scene->prod, slice_of(version),
                    on_promoted);
    assert_false(op->done);
}

static enum promotion_outcome promote(struct scene *scene, int n, enum promotion_rule rule)
{
    struct promoting op;
    begin(scene, &op, versions[n], rule);
    life_wait(&scene->life, &op.done);
    assert_int_equal(op.status, OK);
    return op.promotion.outcome;
}

static enum err try_to_promote(struct scene *scene, const char *version, const char *says)
{
    struct promoting op;
    begin(scene, &op, version, PROMOTION_ANY);
    life_wait(&scene->life, &op.done);
    if (says)
        assert_non_null(strstr(op.promotion.why.text, says));
    return op.status;
}

/* ---- the resulting state ---- */

static uint32_t limit_of(const struct scene *scene, const char *queue)
{
    return queues_figures(&scene->env->queues, slice_of(queue)).limit;
}

static int current_of(const struct scene *scene)
{
    const struct worker *current = workers_current(scene->env->fleet->workers);
    int n = 0;
    for (int i = 1; current && i <= 3; i++)
        if (!strcmp(current->version, versions[i]))
            n = i;
    return n;
}

/* Asserts that version n is current, with its limit and its schedule alone. 0: none is. */
static void assert_current(struct scene *scene, int n)
{
    struct schedule *schedule = schedules_next(scene->life.schedules, scene->env, NULL);
    char name[16];
    assert_int_equal(current_of(scene), n);
    assert_int_equal(limit_of(scene, "common"), n ? (uint32_t)n : UINT32_MAX);
    assert_int_equal(schedules_count(scene->life.schedules, scene->env), n ? 1 : 0);
    if (!n)
        return;
    snprintf(name, sizeof(name), "tick-%d", n);
    assert_string_equal(schedule->facts.task->data, name);
}

static void promotion_applies_limits_and_schedules(void **state)
{
    struct scene *scene = open_scene();
    (void)state;
    add_deployed(scene, 1);
    add_deployed(scene, 2);
    assert_current(scene, 0);
    assert_int_equal(promote(scene, 2, PROMOTION_NEWER), PROMOTION_MADE);
    assert_current(scene, 2);
    assert_int_equal(limit_of(scene, "own-1"), UINT32_MAX);
    assert_int_equal(promote(scene, 1, PROMOTION_NEWER), PROMOTION_OLDER);
    assert_current(scene, 2);
    assert_int_equal(promote(scene, 1, PROMOTION_ANY), PROMOTION_MADE);
    assert_current(scene, 1);
    assert_int_equal(promote(scene, 1, PROMOTION_ANY), PROMOTION_WAS_CURRENT);
    add_deployed(scene, 3);
    assert_current(scene, 1);
    restart(scene);
    deploy_all(scene);
    life_start(&scene->life);
    assert_current(scene, 1);
    assert_int_equal(limit_of(scene, "own-3"), UINT32_MAX);
    close_scene(scene);
}

/* Runs of an older version may be left, so the limits of its queues are restored too. */
static void limits_of_older_versions_are_restored_at_start(void **state)
{
    struct scene *scene = open_scene();
    (void)state;
    for (int n = 1; n <= 3; n++) {
        add_deployed(scene, n);
        if (n < 3)
            promote(scene, n, PROMOTION_NEWER);
    }
    for (int start = 0; start < 3; start++) {
        assert_current(scene, 2);
        assert_int_equal(limit_of(scene, "own-1"), 101);
        assert_int_equal(limit_of(scene, "own-2"), 102);
        assert_int_equal(limit_of(scene, "own-3"), UINT32_MAX);
        restart(scene);
        life_start(&scene->life);
    }
    close_scene(scene);
}

static void without_a_pointer_the_newest_plain_registration_is_current(void **state)
{
    struct scene *scene = open_scene();
    (void)state;
    add(scene, 1, "", "");
    add(scene, 2, "", "");
    add_deployed(scene, 3);
    restart(scene);
    life_start(&scene->life);
    assert_current(scene, 2);
    deploy_all(scene);
    assert_int_equal(promote(scene, 1, PROMOTION_NEWER), PROMOTION_OLDER);
    assert_int_equal(promote(scene, 2, PROMOTION_NEWER), PROMOTION_MADE);
    assert_int_equal(promote(scene, 3, PROMOTION_NEWER), PROMOTION_MADE);
    restart(scene);
    life_start(&scene->life);
    assert_current(scene, 3);
    assert_int_equal(promote(scene, 1, PROMOTION_ANY), PROMOTION_MADE);
    restart(scene);
    life_start(&scene->life);
    assert_current(scene, 1);
    close_scene(scene);
}

/* The store fails from its n-th commit on, which is like a crash before it. */
static void interrupted_promotion_is_complete_or_undone(void **state)
{
    (void)state;
    bool was_cut_off = true, was_made = false;
    for (int n = 1; was_cut_off; n++) {
        struct scene *scene = open_scene();
        struct promoting op;
        add_deployed(scene, 1);
        add_deployed(scene, 2);
        promote(scene, 1, PROMOTION_NEWER);
        *fake_store_fault(scene->fake) = (struct fault){ .countdown = n, .repeat = -1 };
        begin(scene, &op, versions[2], PROMOTION_NEWER);
        life_wait(&scene->life, &op.done);
        was_cut_off = fake_store_fault(scene->fake)->tripped;
        assert_int_equal(op.status == OK, !was_cut_off);
        bool is_made = current_of(scene) == 2;
        assert_true(is_made == (n > 1));
        was_made |= was_cut_off && is_made;
        restart(scene);
        deploy_all(scene);
        life_start(&scene->life);
        assert_current(scene, is_made ? 2 : 1);
        assert_int_equal(promote(scene, 2, PROMOTION_ANY),
                         is_made ? PROMOTION_WAS_CURRENT : PROMOTION_MADE);
        assert_current(scene, 2);
        close_scene(scene);
    }
    assert_true(was_made); /* at least once between pointer and schedules */
}

/* The client got an error and retries: the retry writes the schedules. */
static void promotion_with_failed_schedules_can_be_retried(void **state)
{
    struct scene *scene = open_scene();
    struct promoting op;
    (void)state;
    add_deployed(scene, 1);
    *fake_store_fault(scene->fake) = (struct fault){ .countdown = 2 };
    begin(scene, &op, versions[1], PROMOTION_ANY);
    life_wait(&scene->life, &op.done);
    assert_int_not_equal(op.status, OK);
    assert_int_equal(current_of(scene), 1);
    *fake_store_fault(scene->fake) = (struct fault){ 0 };
    assert_int_equal(promote(scene, 1, PROMOTION_ANY), PROMOTION_WAS_CURRENT);
    assert_current(scene, 1);
    close_scene(scene);
}

/* In every order, close together and in sequence, also with one unit of work per turn. */
static void newer_of_two_concurrent_promotions_wins(void **state)
{
    (void)state;
    for (int variant = 0; variant < 16; variant++) {
        struct scene *scene = open_scene();
        struct promoting ops[3];
        int first = variant & 1 ? 2 : 3, second = 5 - first;
        add_deployed(scene, 1);
        add_deployed(scene, 2);
        add_deployed(scene, 3);
        promote(scene, 1, PROMOTION_NEWER);
        if (variant & 2)
            loop_set_budget(scene->loop, 0);
        fake_store_set_delay(scene->fake, variant & 4 ? 5 : 0, 0);
        begin(scene, &ops[0], versions[first], PROMOTION_NEWER);
        for (int turn = 0; variant & 8 && turn < 3; turn++)
            loop_turn(scene->loop, 1);
        begin(scene, &ops[1], versions[second], PROMOTION_NEWER);
        begin(scene, &ops[2], versions[second], PROMOTION_NEWER);
        for (int i = 0; i < 3; i++) {
            life_wait(&scene->life, &ops[i].done);
            assert_int_equal(ops[i].status, OK);
        }
        assert_current(scene, 3);
        restart(scene);
        life_start(&scene->life);
        assert_current(scene, 3);
        close_scene(scene);
    }
}

static void many_promotions_at_once_are_all_answered(void **state)
{
    struct scene *scene = open_scene();
    struct promoting ops[40];
    (void)state;
    for (int n = 1; n <= 3; n++)
        add_deployed(scene, n);
    for (int i = 0; i < 40; i++)
        begin(scene, &ops[i], versions[1 + i % 3], PROMOTION_ANY);
    for (int i = 0; i < 40; i++) {
        life_wait(&scene->life, &ops[i].done);
        assert_int_equal(ops[i].status, OK);
    }
    int n = current_of(scene);
    assert_current(scene, n);
    restart(scene);
    life_start(&scene->life);
    assert_current(scene, n);
    close_scene(scene);
}

static void only_a_deployed_version_in_memory_can_be_promoted(void **state)
{
    struct scene *scene = open_scene();
    (void)state;
    struct worker *worker = add(scene, 1, "deployment_1", "");
    assert_int_equal(try_to_promote(scene, versions[1], "is not deployed"), ERR_NOT_FOUND);
    assert_int_equal(try_to_promote(scene, "20990101.1", "is not deployed"), ERR_NOT_FOUND);
    versions_deployed(scene->env, worker);
    assert_int_equal(try_to_promote(scene, versions[1], NULL), OK);
    assert_false(registration_forget(scene->life.engine, scene->env, worker));
    add_deployed(scene, 2);
    promote(scene, 2, PROMOTION_NEWER);
    assert_true(registration_forget(scene->life.engine, scene->env, worker));
    workers_note_gone(scene->env->fleet->workers, slice_of(versions[1]));
    assert_int_equal(try_to_promote(scene, versions[1], "no longer kept"), ERR_NOT_FOUND);
    life_settle(&scene->life);
    restart(scene);
    life_start(&scene->life);
    assert_current(scene, 2);
    assert_int_equal(scene->env->fleet->workers->count, 1);
    close_scene(scene);
}

static void promotion_in_an_archived_branch_is_rejected(void **state)
{
    struct scene *scene = open_scene();
    (void)state;
    add_deployed(scene, 1);
    engine_retire_environment(scene->life.engine, scene->env);
    assert_int_equal(try_to_promote(scene, versions[1], "archived"), ERR_NOT_FOUND);
    engine_drop_environment(scene->life.engine, scene->env);
    assert_int_equal(try_to_promote(scene, versions[1], "archived"), ERR_NOT_FOUND);
    close_scene(scene);
}

static void version_being_promoted_is_not_evicted(void **state)
{
    struct scene *scene = open_scene();
    struct promoting op;
    (void)state;
    add_deployed(scene, 1);
    struct worker *worker =
        workers_by_deployment(scene->env->fleet->workers, SLICE("deployment_1"));
    fake_store_set_delay(scene->fake, 20, 0);
    begin(scene, &op, versions[1], PROMOTION_ANY);
    loop_turn(scene->loop, 1);
    loop_turn(scene->loop, 1);
    assert_false(op.done);
    assert_false(registration_forget(scene->life.engine, scene->env, worker));
    life_wait(&scene->life, &op.done);
    assert_current(scene, 1);
    close_scene(scene);
}

static void write_pointer(struct scene *scene, const char *body)
{
    struct writing writing = { 0 };
    struct bytes *name = bytes_create(SLICE("current"));
    struct bytes *text = bytes_create(slice_of(body));
    document_write_begin(scene->life.engine, scene->env->number, DOC_CURRENT, name, text, 0,
                         &writing.write, on_written);
    bytes_unref(name);
    bytes_unref(text);
    life_wait(&scene->life, &writing.done);
}

static void dangling_pointer_falls_back_to_the_newest_registration(void **state)
{
    struct scene *scene = open_scene();
    (void)state;
    add(scene, 1, "", "");
    write_pointer(scene, "{\"version\":\"20250101.1\"}");
    restart(scene);
    life_start(&scene->life);
    assert_current(scene, 1);
    add_deployed(scene, 2);
    assert_int_equal(promote(scene, 2, PROMOTION_NEWER), PROMOTION_MADE);
    restart(scene);
    life_start(&scene->life);
    assert_current(scene, 2);
    close_scene(scene);
}

static void damaged_pointer_ends_the_start_with_a_reason(void **state)
{
    static const char *const damaged[] = { "", "{}", "{\"version\":5}", "20260101.1" };
    (void)state;
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        struct scene *scene = open_scene();
        write_pointer(scene, damaged[i]);
        life_end(&scene->life);
        life_begin(&scene->life, scene->loop, fake_store_store(scene->fake), 0);
        assert_int_equal(scene->life.status, ERR_INVALID);
        assert_non_null(strstr(scene->life.why.text, "current version"));
        close_scene(scene);
    }
}

int main(void)
{
    log_configure(LOG_ERROR, LOG_LOGFMT);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promotion_applies_limits_and_schedules),
        cmocka_unit_test(limits_of_older_versions_are_restored_at_start),
        cmocka_unit_test(without_a_pointer_the_newest_plain_registration_is_current),
        cmocka_unit_test(interrupted_promotion_is_complete_or_undone),
        cmocka_unit_test(promotion_with_failed_schedules_can_be_retried),
        cmocka_unit_test(newer_of_two_concurrent_promotions_wins),
        cmocka_unit_test(many_promotions_at_once_are_all_answered),
        cmocka_unit_test(only_a_deployed_version_in_memory_can_be_promoted),
        cmocka_unit_test(promotion_in_an_archived_branch_is_rejected),
        cmocka_unit_test(version_being_promoted_is_not_evicted),
        cmocka_unit_test(dangling_pointer_falls_back_to_the_newest_registration),
        cmocka_unit_test(damaged_pointer_ends_the_start_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
