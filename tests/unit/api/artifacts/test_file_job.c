/* Jobs on files: one that is no longer needed does not begin, and hashing a bundle stops at
 * its next piece. */
#include "tests/support/world/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/artifacts/kept_files.h"
#include "base/list.h"
#include "base/loop.h"

enum { THREADS = 4 }; /* of libuv's pool */

static uv_loop_t uv;

static struct loop *make_loop(void)
{
    assert_int_equal(uv_loop_init(&uv), 0);
    return loop_create(&uv);
}

static void destroy_loop(struct loop *loop)
{
    loop_destroy(loop);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&uv), 0);
}

struct test_job {
    struct file_job job;
    atomic_bool *may_end; /* NULL: ends at once */
    bool has_run, is_done;
};

static void test_work(struct file_job *job)
{
    struct test_job *test = container_of(job, struct test_job, job);
    test->has_run = true;
    while (test->may_end && !atomic_load(test->may_end))
        usleep(1000);
}

static void on_done(struct file_job *job)
{
    container_of(job, struct test_job, job)->is_done = true;
}

static void begin(struct loop *loop, struct test_job *test)
{
    test->job.work = test_work;
    test->job.done = on_done;
    file_job_begin(loop, &test->job);
}

static void a_job_that_is_canceled_while_it_waits_for_a_thread_does_not_begin(void **state)
{
    (void)state;
    struct loop *loop = make_loop();
    atomic_bool may_end = false;
    struct test_job busy[THREADS] = { 0 }, canceled = { 0 }, wanted = { 0 };
    for (unsigned i = 0; i < THREADS; i++) {
        busy[i].may_end = &may_end;
        begin(loop, &busy[i]);
    }
    begin(loop, &canceled);
    begin(loop, &wanted);
    file_job_cancel(&canceled.job);
    atomic_store(&may_end, true);
    uv_run(&uv, UV_RUN_DEFAULT);
    assert_true(canceled.is_done);
    assert_false(canceled.has_run);
    assert_int_equal(canceled.job.error, ECANCELED);
    assert_true(wanted.has_run);
    assert_int_equal(wanted.job.error, 0);
    destroy_loop(loop);
}

/* ---- a bundle that is hashed: a pipe, so that the test knows how far it is ---- */

struct bundle {
    char folder[32], path[64];
    int fd; /* of the pipe, to write to */
    struct loop *loop;
    struct store store;
    struct kept_files *files;
    struct kept_taking taking;
    bool is_taken;
};

/* Never called: the bundle is canceled before its first piece is put. */
static void put_nothing(struct store *store, struct store_file *req)
{
    (void)store;
    (void)req;
    fail();
}

static const struct store_ops ops = { .file = put_nothing };

static void on_taken(struct kept_taking *taking)
{
    container_of(taking, struct bundle, taking)->is_taken = true;
}

static void wait_until_read(int fd)
{
    int left = 1;
    while (left && !ioctl(fd, FIONREAD, &left))
        usleep(1000);
}

static void begin_bundle(struct bundle *bundle)
{
    bundle->loop = make_loop();
    bundle->store.ops = &ops;
    snprintf(bundle->folder, sizeof(bundle->folder), "/tmp/runcast-test-XXXXXX");
    assert_non_null(mkdtemp(bundle->folder));
    snprintf(bundle->path, sizeof(bundle->path), "%s/bundle", bundle->folder);
    assert_int_equal(mkfifo(bundle->path, 0600), 0);
    bundle->fd = open(bundle->path, O_RDWR);
    assert_int_equal(write(bundle->fd, "\x1f\x8b", 2), 2); /* gzip's first bytes */
    bundle->files = kept_files_create(bundle->loop, &bundle->store, bundle->folder);
    bundle->taking.name = kept_file_name(7, "deployment_1", ".tar.gz");
    bundle->taking.from = bundle->path;
    bundle->taking.done = on_taken;
    kept_taking_begin(bundle->files, &bundle->taking);
    wait_until_read(bundle->fd);
}

static void end_bundle(struct bundle *bundle)
{
    kept_files_destroy(bundle->files);
    destroy_loop(bundle->loop);
    unlink(bundle->path);
    rmdir(bundle->folder);
}

static void a_hash_in_progress_ends_at_its_next_piece(void **state)
{
    (void)state;
    struct bundle bundle = { 0 };
    begin_bundle(&bundle);
    kept_taking_cancel(&bundle.taking);
    assert_int_equal(write(bundle.fd, "more", 4), 4);
    close(bundle.fd); /* a hash that is not canceled finishes, with a result */
    while (!bundle.is_taken)
        uv_run(&uv, UV_RUN_ONCE);
    assert_int_equal(bundle.taking.why.code, ERR_CANCELED);
    assert_string_equal(bundle.taking.hash, "");
    end_bundle(&bundle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_is_canceled_while_it_waits_for_a_thread_does_not_begin),
        cmocka_unit_test(a_hash_in_progress_ends_at_its_next_piece),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
