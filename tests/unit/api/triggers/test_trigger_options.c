/* Options of a trigger: their values, and the errors for invalid ones. */
#include "tests/support/world/unit.h"

#include "api/triggers/trigger_options.h"
#include "base/json/scan.h"
#include "base/mem.h"
#include "core/queues/queue.h"

static const int64_t now_ms = INT64_C(1700000000000); /* 2023-11-14T22:13:20Z */

struct completed_wait {
    struct trigger item;
    struct trigger_parent parent;
    struct failure why;
    enum err err;
};

static struct workers *some_workers(void)
{
    struct workers *workers = workers_create();
    struct worker *worker = mem_new(struct worker);
    snprintf(worker->version, sizeof(worker->version), "20260101.1");
    worker->tasks = mem_new_array(struct worker_task, 2);
    worker->task_count = 2;
    worker->tasks[0] = (struct worker_task){ .id = bytes_create(SLICE("heavy")),
                                             .machine = MACHINE_LARGE_1X };
    worker->tasks[1] =
        (struct worker_task){ .id = bytes_create(SLICE("mail")), .machine = -1 };
    worker->queues = mem_new_array(struct queue_limit, 1);
    worker->queue_count = 1;
    worker->queues[0] = (struct queue_limit){ .name = bytes_create(SLICE("declared")) };
    worker_sort(worker);
    workers_add(workers, worker);
    return workers;
}

/* Sets up queues that versions have declared. */
static void some_queues(struct queues *queues)
{
    queues_init(queues, 10, NULL);
    queues_register(queues, SLICE("declared"));
    queues_register(queues, SLICE("with a blank"));
}

static void forget_queues(struct queues *queues)
{
    queues_forget_limit(queues, SLICE("declared"));
    queues_forget_limit(queues, SLICE("with a blank"));
    queues_finish(queues);
}

static struct completed_wait read_body(const char *task, const char *payload,
                                       const char *options)
{
    struct completed_wait outcome = { 0 };
    struct workers *workers = some_workers();
    struct queues queues;
    struct trigger_place place = { .workers = workers,
                                   .queues = &queues,
                                   .now_ms = now_ms };
    struct buf text = { 0 };
    struct trigger_source source = {
        .task = slice_of(task),
        .payload = payload ? slice_of(payload) : (struct slice){ 0 },
        .options = options ? slice_of(options) : (struct slice){ 0 },
    };
    if (options)
        assert_true(scan_is_json(source.options));
    if (scan_string(source.payload, &text))
        source.payload_text = buf_slice(&text);
    source.text_is_json = scan_is_json(source.payload_text);
    some_queues(&queues);
    outcome.err =
        trigger_options_read(&source, &place, &outcome.item, &outcome.parent, &outcome.why);
    buf_finish(&text);
    forget_queues(&queues);
    workers_destroy(workers);
    return outcome;
}

static void done(struct completed_wait *outcome)
{
    run_finish(&outcome->item.run);
    bytes_unref(outcome->parent.run_id);
    bytes_forget_shared();
}

/* ---- rejected ---- */

struct refused_case {
    const char *options;
    enum err err;
    const char *says;
};

static void assert_refused(const struct refused_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct completed_wait outcome = read_body("mail", "1", cases[i].options);
        if (outcome.err != cases[i].err || !strstr(outcome.why.text, cases[i].says))
            fail_msg("%s: %d '%s'", cases[i].options, outcome.err, outcome.why.text);
        done(&outcome);
    }
}

static void invalid_option_is_rejected_by_name(void **state)
{
    (void)state;
    static const struct refused_case cases[] = {
        { "[]", ERR_INVALID, "Expected object at \"options\"" },
        { "null", ERR_INVALID, "\"options\"" },
        { "{\"ttl\":1,\"ttl\":2}", ERR_INVALID, "named twice" },
        { "{\"ttl\":1,\"\\u0074tl\":2}", ERR_INVALID, "named twice" },
        { "{\"queue\":{\"name\":\"a\",\"name\":\"b\"}}", ERR_INVALID,
          "twice at \"options.queue\"" },
        { "{\"machine\":\"huge\"}", ERR_INVALID, "options.machine" },
        { "{\"machine\":1}", ERR_INVALID, "options.machine" },
        { "{\"maxAttempts\":1.5}", ERR_INVALID, "options.maxAttempts" },
        { "{\"maxAttempts\":\"3\"}", ERR_INVALID, "options.maxAttempts" },
        { "{\"maxAttempts\":1e400}", ERR_INVALID, "options.maxAttempts" },
        { "{\"ttl\":-1}", ERR_INVALID, "options.ttl" },
        { "{\"ttl\":1.5}", ERR_INVALID, "options.ttl" },
        { "{\"ttl\":true}", ERR_INVALID, "options.ttl" },
        { "{\"delay\":\"soon\"}", ERR_INVALID, "delay 'soon' is neither a date" },
        { "{\"delay\":true}", ERR_INVALID, "options.delay" },
        { "{\"delay\":60}", ERR_INVALID, "for a duration send text like 60s" },
        { "{\"delay\":99999999999}", ERR_INVALID,
          "delay 99999999999 as a number is a date" },
        { "{\"delay\":8640000000000001}", ERR_INVALID, "options.delay" },
        { "{\"delay\":\"99999999999999w\"}", ERR_INVALID, "options.delay" },
        { "{\"tags\":7}", ERR_INVALID, "options.tags" },
        { "{\"tags\":[7]}", ERR_INVALID, "options.tags" },
        { "{\"tags\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\"]"
          "}",
          ERR_RULE, "Runs can only have 10 tags, you're trying to set 11." },
        { "{\"metadata\":5}", ERR_INVALID, "options.metadata" },
        { "{\"metadata\":[]}", ERR_INVALID, "options.metadata" },
        { "{\"metadata\":\"{}\"}", ERR_INVALID, "options.metadata" },
        { "{\"queue\":\"q\"}", ERR_INVALID, "options.queue" },
        { "{\"queue\":{\"name\":1}}", ERR_INVALID, "options.queue" },
        { "{\"queue\":{\"name\":\"q\",\"concurrencyLimit\":\"1\"}}", ERR_INVALID,
          "options.queue" },
        { "{\"queue\":{\"name\":{\"name\":\"q\",\"concurrencyLimit\":\"1\"}}}", ERR_INVALID,
          "options.queue" },
        { "{\"queue\":{\"name\":{\"name\":{\"name\":\"q\"}}}}", ERR_INVALID,
          "options.queue" },
        { "{\"concurrencyKey\":{}}", ERR_INVALID, "options.concurrencyKey" },
        { "{\"priority\":\"high\"}", ERR_INVALID, "options.priority" },
        { "{\"maxDuration\":\"1h\"}", ERR_INVALID, "options.maxDuration" },
        { "{\"test\":1}", ERR_INVALID, "options.test" },
        { "{\"payloadSize\":-1}", ERR_INVALID, "options.payloadSize" },
        { "{\"payloadType\":1}", ERR_INVALID, "options.payloadType" },
        { "{\"idempotencyKey\":1}", ERR_INVALID, "options.idempotencyKey" },
        { "{\"idempotencyKey\":\"k\",\"idempotencyKeyTTL\":5}", ERR_INVALID,
          "options.idempotencyKeyTTL" },
        { "{\"idempotencyKeyOptions\":{\"key\":\"k\",\"scope\":\"all\"}}", ERR_INVALID,
          "options.idempotencyKeyOptions" },
        { "{\"lockToVersion\":\"19990101.1\"}", ERR_RULE,
          "Task locked to version '19990101.1', but no worker found with that version." },
        { "{\"parentRunId\":1}", ERR_INVALID, "options.parentRunId" },
        { "{\"lockToVersion\":\"20260101.1\",\"queue\":{\"name\":\"other\"}}", ERR_RULE,
          "Specified queue 'other' not found or not associated with locked version "
          "'20260101.1'." },
        { "{\"resumeParentOnCompletion\":\"yes\"}", ERR_INVALID,
          "options.resumeParentOnCompletion" },
        { "{\"region\":[1]}", ERR_INVALID, "options.region" },
        { "{\"externalDeploymentId\":5}", ERR_INVALID, "options.externalDeploymentId" },
        { "{\"metadataType\":\"text/plain\"}", ERR_INVALID, "options.metadataType" },
        { "{\"parentAttempt\":5}", ERR_INVALID, "options.parentAttempt" },
    };
    assert_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

static void limits_and_gates_must_be_declared(void **state)
{
    (void)state;
    static const struct refused_case cases[] = {
        { "{\"gates\":[{\"queue\":\"\"}]}", ERR_INVALID, "options.gates" },
        { "{\"gates\":{}}", ERR_INVALID, "options.gates" },
        { "{\"gates\":[{\"queue\":\"q\"}]}", ERR_RULE,
          "No version declares the queue 'q'" },
        { "{\"gates\":[{\"queue\":\"task/q\"}]}", ERR_RULE,
          "No version declares the queue 'task/q'" },
        { "{\"gates\":[{\"queue\":\"declared\",\"concurrencyKey\":5}]}", ERR_INVALID,
          "options.gates" },
        { "{\"concurrency\":[\"a b\"]}", ERR_INVALID, "options.concurrency" },
        { "{\"concurrency\":[\"c\"]}", ERR_RULE,
          "No version declares the concurrency limit 'c'" },
    };
    assert_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

static void invalid_debounce_is_rejected_with_what_to_send(void **state)
{
    (void)state;
    static const struct {
        const char *options;
        enum err err;
        const char *says;
    } cases[] = {
        { "{\"debounce\":[]}", ERR_INVALID, "Expected object at \"options.debounce\"" },
        { "{\"debounce\":{}}", ERR_INVALID, "Expected string at \"options.debounce.key\"" },
        { "{\"debounce\":{\"key\":\"\",\"delay\":\"5s\"}}", ERR_INVALID,
          "at least 1 character(s) at \"options.debounce.key\"" },
        { "{\"debounce\":{\"key\":\"k\"}}", ERR_INVALID,
          "Expected string at \"options.debounce.delay\"" },
        { "{\"debounce\":{\"key\":\"k\",\"delay\":5}}", ERR_INVALID,
          "Expected string at \"options.debounce.delay\"" },
        { "{\"debounce\":{\"key\":\"k\",\"delay\":\"2030-01-01\"}}", ERR_INVALID,
          "debounce.delay '2030-01-01' must be a duration, not a date; send text like "
          "30s" },
        { "{\"debounce\":{\"key\":\"k\",\"delay\":\"soon\"}}", ERR_INVALID,
          "debounce.delay 'soon' must be a duration; send text like 30s, 5m or 2h30m, with "
          "the units w, d, h, m and s, at" },
        { "{\"debounce\":{\"key\":\"k\",\"delay\":\"0s\"}}", ERR_INVALID,
          "debounce.delay '0s' is too short; send 1s or more" },
        { "{\"debounce\":{\"key\":\"k\",\"delay\":\"5s\",\"mode\":\"both\"}}", ERR_INVALID,
          "Expected leading or trailing at \"options.debounce.mode\"" },
        { "{\"debounce\":{\"key\":\"k\",\"delay\":\"5s\",\"maxDelay\":\"5s\"}}",
          ERR_INVALID,
          "must be longer than debounce.delay at \"options.debounce.maxDelay\"" },
        { "{\"debounce\":{\"key\":\"k\",\"delay\":\"5s\",\"maxDelay\":\"2030-01-01\"}}",
          ERR_INVALID, "debounce.maxDelay '2030-01-01' must be a duration, not a date" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct completed_wait outcome = read_body("mail", "1", cases[i].options);
        if (outcome.err != cases[i].err || !strstr(outcome.why.text, cases[i].says))
            fail_msg("%s: %d '%s'", cases[i].options, outcome.err, outcome.why.text);
        done(&outcome);
    }
}

static void task_missing_in_the_locked_version_is_rejected(void **state)
{
    (void)state;
    struct completed_wait outcome =
        read_body("nope", "1", "{\"lockToVersion\":\"20260101.1\"}");
    assert_int_equal(outcome.err, ERR_RULE);
    assert_string_equal(outcome.why.text,
                        "Task 'nope' not found on locked version '20260101.1'.");
    done(&outcome);
}

static void invalid_duration_is_rejected(void **state)
{
    (void)state;
    static const char *const names[] = { "ttl", "delay", "idempotencyKeyTTL" };
    static const char *const texts[] = {
        "abc",  "PT2S", "1 hour", "1ms", "1s1s",  "5zz",
        "1.5h", "-1h",  "1s ",    "h",   "1h2hr", "18446744073709551615d"
    };
    static const char *const rules[] = {
        "at \"options.ttl\" is neither a duration like 1h42m nor a number of seconds",
        ("is neither a date like 2030-01-31T09:00:00Z nor a duration like 1h30m at "
         "\"options.delay\""),
        "is not a duration like 1h30m at \"options.idempotencyKeyTTL\"",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (size_t j = 0; j < sizeof(texts) / sizeof(texts[0]); j++) {
            char options[128], says[256];
            snprintf(options, sizeof(options), "{\"%s\":\"%s\"}", names[i], texts[j]);
            snprintf(says, sizeof(says), "Validation error: %s '%s' %s", names[i], texts[j],
                     rules[i]);
            struct completed_wait outcome = read_body("mail", "1", options);
            assert_int_equal(outcome.err, ERR_INVALID);
            assert_string_equal(outcome.why.text, says);
            done(&outcome);
        }
}

/* Makes a text of `count` units between `before` and `behind`, like {"name":"xxx…"}. */
static char *with_text(const char *before, const char *unit, size_t count,
                       const char *behind)
{
    struct buf text = { 0 };
    buf_add_text(&text, before);
    for (size_t i = 0; i < count; i++)
        buf_add_text(&text, unit);
    buf_add_text(&text, behind);
    buf_add_char(&text, '\0');
    return text.ptr;
}

static void lengths_are_counted_in_characters(void **state)
{
    (void)state;
    static const struct {
        const char *before, *unit;
        size_t count;
        const char *behind;
        enum err err;
    } cases[] = {
        { "{\"tags\":\"", "x", 128, "\"}", OK },
        { "{\"tags\":\"", "x", 129, "\"}", ERR_INVALID },
        { "{\"tags\":[\"", "ż", 128, "\"]}", OK },
        { "{\"tags\":[\"", "\xF0\x9F\x9A\x80", 64, "\"]}", OK }, /* two UTF-16 units each */
        { "{\"tags\":[\"", "\xF0\x9F\x9A\x80", 65, "\"]}", ERR_INVALID },
        { "{\"tags\":[\"", "\\u007a", 128, "\"]}", OK },
        { "{\"idempotencyKey\":\"", "k", 2048, "\"}", OK },
        { "{\"idempotencyKey\":\"", "k", 2049, "\"}", ERR_INVALID },
        { "{\"metadata\":{\"m\":\"", "m", 262144 - 8, "\"}}", OK },
        { "{\"metadata\":{\"m\":\"", "m", 262144 - 7, "\"}}", ERR_TOO_LARGE },
        { "{\"unknown\":\"", "u", 600000, "\"}", ERR_TOO_LARGE },
        { "{\"a\":[", "[],", 1000, "0]}", OK },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *options =
            with_text(cases[i].before, cases[i].unit, cases[i].count, cases[i].behind);
        struct completed_wait outcome = read_body("mail", "1", options);
        if (outcome.err != cases[i].err)
            fail_msg("case %zu: %d '%s'", i, outcome.err, outcome.why.text);
        done(&outcome);
        free(options);
    }
}

static void too_large_metadata_error_names_the_limit(void **state)
{
    (void)state;
    char *options = with_text("{\"metadata\":{\"m\":\"", "m", 262200, "\"}}");
    struct completed_wait outcome = read_body("mail", "1", options);
    assert_string_equal(outcome.why.text, "Metadata exceeds maximum size of 262144 bytes");
    done(&outcome);
    free(options);
}

/* ---- resulting texts ---- */

enum what {
    TTL,
    QUEUE,
    LANE,
    NEEDS,
    REGION,
    VERSION,
    EXTERNAL,
    METADATA,
    PAYLOAD,
    TYPE,
    KEY,
    SHOWN
};

static struct slice text_of(const struct run *run, enum what what)
{
    const struct run_rare *rare = run_rare(run);
    switch (what) {
    case TTL: return bytes_slice(rare->ttl);
    case QUEUE: return bytes_slice(run->queue);
    case LANE: return bytes_slice(rare->concurrency_key);
    case NEEDS: return bytes_slice(rare->limits);
    case REGION: return bytes_slice(rare->region);
    case VERSION: return bytes_slice(run->worker_version);
    case EXTERNAL: return bytes_slice(rare->external_deployment);
    case METADATA: return bytes_slice(run->metadata);
    case PAYLOAD: return bytes_slice(run->payload);
    case TYPE: return bytes_slice(rare->payload_type);
    case KEY: return bytes_slice(rare->idempotency_key);
    default: return bytes_slice(rare->idempotency_shown);
    }
}

struct text_case {
    const char *payload, *options;
    enum what what;
    const char *text; /* NULL: none */
};

static void assert_texts(const struct text_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct completed_wait outcome =
            read_body("mail", cases[i].payload, cases[i].options);
        assert_int_equal(outcome.err, OK);
        struct slice text = text_of(&outcome.item.run, cases[i].what);
        if (!text.ptr != !cases[i].text || (text.ptr && !slice_is(text, cases[i].text)))
            fail_msg("%s %s: '%.*s'", cases[i].payload, cases[i].options, SLICE_ARG(text));
        done(&outcome);
    }
}

static void options_set_texts_of_the_run(void **state)
{
    (void)state;
    static const struct text_case cases[] = {
        { "1", "{\"ttl\":\"2h30m\"}", TTL, "2h30m" },
        { "1", "{\"ttl\":\"1h42m\"}", TTL, "1h42m" },
        { "1", "{\"ttl\":\"1hr\"}", TTL, "1hr" },
        { "1", "{\"ttl\":\"0s\"}", TTL, NULL },
        { "1", "{\"ttl\":\"\"}", TTL, NULL },
        { "1", "{\"ttl\":1e300}", TTL, "14285714w2d" },
        { "1", "{\"ttl\":3600}", TTL, "1h" },
        { "1", "{\"ttl\":694861.0}", TTL, "1w1d1h1m1s" },
        { "1", "{\"ttl\":0}", TTL, NULL },
        { "1", "{\"queue\":{\"name\":\"a b.c/d_e-f\xC3\xA9!\"}}", QUEUE, "abc/d_e-f" },
        { "1", "{\"queue\":{\"name\":\"\\u0061\"}}", QUEUE, "a" },
        { "1", "{\"queue\":{\"name\":\"!!!\"}}", QUEUE, NULL },
        { "1", "{\"queue\":{\"concurrencyLimit\":null}}", QUEUE, NULL },
        { "1", "{\"queue\":{\"name\":\"q\",\"concurrencyLimit\":5}}", QUEUE, "q" },
        { "1", "{\"queue\":{\"name\":{\"name\":\"q\",\"concurrencyLimit\":5}}}", QUEUE,
          "q" },
        { "1", "{\"queue\":{\"name\":\"with a blank\"}}", QUEUE, "with a blank" },
        { "1", "{\"concurrencyKey\":\"ck\"}", LANE, "ck" },
        { "1", "{\"concurrencyKey\":\"\"}", LANE, NULL },
        { "1", "{\"concurrencyKey\":42}", LANE, "42" },
        { "1", "{\"concurrencyKey\":1.50}", LANE, "1.5" },
        { "1", "{\"concurrencyKey\":-0}", LANE, "0" },
        { "1", "{\"concurrency\":[]}", NEEDS, "[]" },
        { "1", "{\"gates\":[]}", NEEDS, "[null,{}]" },
        { "1", "{\"gates\":[],\"concurrency\":[]}", NEEDS, "[{}]" },
        { "1", "{\"gates\":[{\"queue\":\"declared\"}]}", NEEDS,
          "[null,{\"queue\":\"declared\"}]" },
        { "1",
          "{\"gates\":[{\"queue\":\"task/mail\",\"concurrencyKey\":\"u\\u0022\"},"
          "{\"queue\":\"with a blank\"}],\"concurrency\":[]}",
          NEEDS,
          "[{\"queue\":\"task/mail\",\"key\":\"u\\\"\"},{\"queue\":\"with a blank\"}]" },
        { "1", "{\"region\":\"eu\"}", REGION, "eu" },
        { "1", "{\"lockToVersion\":\"20260101.1\"}", VERSION, "20260101.1" },
        { "1", "{\"externalDeploymentId\":\" ci 7 \"}", EXTERNAL, "ci 7" },
        { "1", "{\"externalDeploymentId\":\"  \"}", EXTERNAL, NULL },
        { "1", "{\"externalDeploymentId\":null}", EXTERNAL, NULL },
        { "1", "{\"externalDeploymentId\":\"ci\",\"lockToVersion\":\"20260101.1\"}",
          EXTERNAL, NULL },
        { "1", "{\"lockToVersion\":\"20260101.1\",\"queue\":{\"name\":\"declared\"}}",
          QUEUE, "declared" },
        { "1", "{\"lockToVersion\":\"20260101.1\",\"queue\":{\"name\":\"task/heavy\"}}",
          QUEUE, "task/heavy" },
        { "1", "{\"metadata\":{ \"n\": 1e400, \"n\": -0 }}", METADATA,
          "{ \"n\": 1e400, \"n\": -0 }" },
        { "1", "{\"metadata\":null}", METADATA, NULL },
        { "1", "{\"idempotencyKey\":\"hash\"}", KEY, "hash" },
        { "1", "{\"idempotencyKey\":\"hash\"}", SHOWN, "hash" },
        { "1", "{\"idempotencyKey\":\"\"}", KEY, NULL },
        { "1",
          "{\"idempotencyKeyOptions\":{\"key\":\"mine\",\"scope\":\"run\"},"
          "\"idempotencyKey\":\"hash\"}",
          SHOWN, "mine" },
        { "1", "{\"idempotencyKeyOptions\":{\"key\":\"mine\",\"scope\":\"global\"}}", SHOWN,
          NULL },
    };
    assert_texts(cases, sizeof(cases) / sizeof(cases[0]));
}

/* A payload is marked as JSON or not when it is read, so that it is not scanned again. */
static void payload_is_marked_as_json_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *payload, *options;
        enum bytes_json expected;
    } cases[] = {
        { "{\"a\":1}", "{}", BYTES_JSON },
        { "\"{\"", "{}", BYTES_JSON }, /* the quotes are part of it */
        { "\"{}\"", "{\"payloadType\":\"application/json\"}", BYTES_JSON },
        { "\"{\"", "{\"payloadType\":\"application/json\"}", BYTES_JSON },
        { "\"{}\"", "{\"payloadType\":\"application/super+json\"}", BYTES_JSON },
        { "\"{\"", "{\"payloadType\":\"application/super+json\"}", BYTES_NO_JSON },
        { "\"a b\"", "{\"payloadType\":\"text/plain\"}", BYTES_NO_JSON },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct completed_wait outcome =
            read_body("mail", cases[i].payload, cases[i].options);
        struct bytes *payload = outcome.item.run.payload;
        assert_int_equal(payload->json, cases[i].expected);
        assert_int_equal(scan_is_json(bytes_slice(payload)), payload->json == BYTES_JSON);
        done(&outcome);
    }
}

static void payload_is_stored_by_its_type(void **state)
{
    (void)state;
    static const struct text_case cases[] = {
        { NULL, NULL, PAYLOAD, NULL },
        { "null", NULL, PAYLOAD, "null" },
        { "{ \"n\": 12345678901234567890 }", NULL, PAYLOAD,
          "{ \"n\": 12345678901234567890 }" },
        { "\"text\"", NULL, PAYLOAD, "\"text\"" },
        { "\"text\"", "{\"payloadType\":\"application/json\"}", PAYLOAD, "\"text\"" },
        { "\"a\\\"b\\u00e9\"", "{\"payloadType\":\"text/plain\"}", PAYLOAD,
          "a\"b\xC3\xA9" },
        { "\"{}\"", "{\"payloadType\":\"application/super+json\"}", TYPE,
          "application/super+json" },
        { "\"{}\"", "{\"payloadType\":\"application/json\"}", TYPE, NULL },
        { "{}", "{\"payloadType\":\"text/plain\"}", PAYLOAD, NULL },
        { "\"\"", NULL, PAYLOAD, NULL },
        { "\"\"", "{\"payloadType\":\"text/plain\"}", PAYLOAD, NULL },
        { "\"a/b\"", "{\"payloadType\":\"application/store\"}", PAYLOAD, "a/b" },
    };
    assert_texts(cases, sizeof(cases) / sizeof(cases[0]));
}

/* ---- resulting numbers ---- */

enum number { DELAY, ATTEMPTS, DURATION, PRIORITY, MACHINE, TAGS, TEST, NO_TTL, KEY_LIFE };

static int64_t number_of(const struct trigger *item, enum number number)
{
    const struct run *run = &item->run;
    switch (number) {
    case DELAY:
        return run_rare(run)->delayed_until ? run_rare(run)->delayed_until - now_ms : 0;
    case ATTEMPTS: return run->max_attempts;
    case DURATION: return run->max_duration_s;
    case PRIORITY: return run_rare(run)->priority_ms;
    case MACHINE: return run->machine;
    case TAGS: return run->tags ? run->tags->count : 0;
    case TEST: return run->is_test;
    case NO_TTL: return item->no_default_ttl;
    default: return item->key_expires_at - now_ms;
    }
}

static void options_set_numbers_of_the_run(void **state)
{
    (void)state;
    static const int64_t day = 24 * 3600 * INT64_C(1000);
    static const struct {
        const char *task, *options;
        enum number what;
        int64_t number;
    } cases[] = {
        { "mail", "{\"delay\":\"90s\"}", DELAY, 90000 },
        { "mail", "{\"delay\":\"1hr\"}", DELAY, 3600000 },
        { "mail", "{\"delay\":\"2023-11-14T22:13:21.5Z\"}", DELAY, 1500 },
        { "mail", "{\"delay\":\"2023-11-14T23:13:21+01:00\"}", DELAY, 1000 },
        { "mail", "{\"delay\":\"2024\"}", DELAY, INT64_C(1704067200000) - now_ms },
        { "mail", "{\"delay\":\"2020-01-01\"}", DELAY, 0 }, /* in the past */
        { "mail", "{\"delay\":\"0s\"}", DELAY, 0 },
        { "mail", "{\"delay\":\"\"}", DELAY, 0 },
        { "mail", "{\"maxAttempts\":3.0}", ATTEMPTS, 3 },
        { "mail", "{\"maxAttempts\":0}", ATTEMPTS, 1 },
        { "mail", "{\"maxAttempts\":100000}", ATTEMPTS, RUN_ATTEMPTS_MAX },
        { "mail", "{\"maxDuration\":1}", DURATION, 5 },
        { "mail", "{\"maxDuration\":60}", DURATION, 60 },
        { "mail", "{\"maxDuration\":1e20}", DURATION, 2147483647 },
        { "mail", "{\"priority\":10}", PRIORITY, 10000 },
        { "mail", "{\"priority\":0.0015}", PRIORITY, 2 },
        { "mail", "{\"priority\":1e9}", PRIORITY, 2147483647 },
        { "mail", "{\"priority\":-1e9}", PRIORITY, INT32_MIN },
        { "mail", "{}", MACHINE, MACHINE_SMALL_1X },
        { "heavy", "{}", MACHINE, MACHINE_LARGE_1X },
        { "heavy", "{\"machine\":\"micro\"}", MACHINE, MACHINE_MICRO },
        { "mail", "{\"tags\":\"one\"}", TAGS, 1 },
        { "mail", "{\"tags\":\"  \"}", TAGS, 0 },
        { "mail", "{\"tags\":[\" \",\"a\",\"a\",\"\"]}", TAGS, 2 },
        { "mail", "{\"tags\":[]}", TAGS, 0 },
        { "mail", "{\"test\":true}", TEST, 1 },
        { "mail", "{\"ttl\":0}", NO_TTL, 1 },
        { "mail", "{\"ttl\":\"0s\"}", NO_TTL, 1 },
        { "mail", "{\"ttl\":1}", NO_TTL, 0 },
        { "mail", "{\"idempotencyKey\":\"k\"}", KEY_LIFE, 30 * day },
        { "mail", "{\"idempotencyKey\":\"k\",\"idempotencyKeyTTL\":\"2s\"}", KEY_LIFE,
          2000 },
        { "mail", "{\"idempotencyKeyTTL\":\"7d\",\"idempotencyKey\":\"k\"}", KEY_LIFE,
          7 * day },
        { "mail", "{\"idempotencyKey\":\"k\",\"idempotencyKeyTTL\":\"1h30m\"}", KEY_LIFE,
          5400000 },
        { "mail", "{\"idempotencyKey\":\"k\",\"idempotencyKeyTTL\":\"1w\"}", KEY_LIFE,
          7 * day },
        { "mail", "{\"idempotencyKey\":\"k\",\"idempotencyKeyTTL\":\"\"}", KEY_LIFE,
          30 * day },
        { "mail", "{\"idempotencyKey\":\"k\",\"idempotencyKeyTTL\":\"99999999d\"}",
          KEY_LIFE, 36500 * day },
        { "mail", "{\"unknown\":{\"a\":[1]},\"parentBatch\":\"b\",\"region\":null}", TAGS,
          0 },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct completed_wait outcome = read_body(cases[i].task, "1", cases[i].options);
        if (outcome.err || number_of(&outcome.item, cases[i].what) != cases[i].number)
            fail_msg("%s: %lld '%s'", cases[i].options,
                     (long long)number_of(&outcome.item, cases[i].what), outcome.why.text);
        done(&outcome);
    }
}

static void debounce_sets_a_mark_and_delays_the_run(void **state)
{
    static const char options[] =
        "{\"debounce\":{\"key\":\"k\",\"delay\":\"1m\",\"mode\":\"trailing\","
        "\"maxDelay\":\"2h30m\"},\"machine\":\"micro\"}";
    (void)state;
    struct completed_wait outcome = read_body("mail", "1", options);
    assert_int_equal(outcome.err, OK);
    const struct debounce *debounce = &outcome.item.debounce;
    const struct run_rare *rare = run_rare(&outcome.item.run);
    assert_int_equal(debounce->delay_ms, 60000);
    assert_int_equal(debounce->max_delay_ms, 9000000);
    assert_true(debounce->is_trailing);
    assert_true(debounce->names_machine);
    assert_string_equal(rare->waits->data, "[{\"type\":\"DEBOUNCE\",\"key\":\"k\"}]");
    int64_t until = rare->delayed_until;
    done(&outcome);
    outcome = read_body("mail", "1",
                        "{\"debounce\":{\"key\":\"k\",\"delay\":\"1s\"},\"delay\":\"1m\"}");
    assert_int_equal(run_rare(&outcome.item.run)->delayed_until, until); /* delay wins */
    assert_false(outcome.item.debounce.is_trailing);
    assert_false(outcome.item.debounce.names_machine);
    done(&outcome);
}

static void a_key_of_debounce_has_at_most_512_characters(void **state)
{
    (void)state;
    for (int len = 512; len <= 513; len++) {
        char options[640];
        snprintf(options, sizeof(options),
                 "{\"debounce\":{\"key\":\"%0*d\",\"delay\":\"5s\"}}", len, 0);
        struct completed_wait outcome = read_body("mail", "1", options);
        assert_int_equal(outcome.err, len == 512 ? OK : ERR_INVALID);
        done(&outcome);
    }
}

static void a_header_wins_over_the_key_in_the_body(void **state)
{
    (void)state;
    struct workers *workers = some_workers();
    struct queues queues;
    struct trigger_place place = { .workers = workers,
                                   .queues = &queues,
                                   .now_ms = now_ms };
    struct completed_wait outcome = { 0 };
    struct trigger_source source = {
        .task = SLICE("mail"),
        .options = SLICE("{\"idempotencyKey\":\"body\",\"idempotencyKeyTTL\":\"1d\"}"),
        .key = SLICE("header"),
        .key_ttl = SLICE("3m"),
    };
    some_queues(&queues);
    assert_int_equal(
        trigger_options_read(&source, &place, &outcome.item, &outcome.parent, &outcome.why),
        OK);
    assert_true(
        slice_is(bytes_slice(run_rare(&outcome.item.run)->idempotency_key), "header"));
    assert_int_equal(outcome.item.key_expires_at - now_ms, 180000);
    done(&outcome);
    forget_queues(&queues);
    workers_destroy(workers);
}

static void parent_is_returned_to_the_caller(void **state)
{
    (void)state;
    struct completed_wait outcome = read_body(
        "mail", "1", "{\"parentRunId\":\"run_1\",\"resumeParentOnCompletion\":true}");
    assert_int_equal(outcome.err, OK);
    assert_true(slice_is(bytes_slice(outcome.parent.run_id), "run_1"));
    assert_true(outcome.parent.resume);
    done(&outcome);
}

static void task_name_length_is_limited(void **state)
{
    (void)state;
    char *longest = with_text("", "t", 512, "");
    char *longer = with_text("", "t", 513, "");
    struct completed_wait empty = read_body("", "1", NULL),
                          most = read_body(longest, "1", NULL),
                          more = read_body(longer, "1", NULL);
    assert_int_equal(empty.err, ERR_INVALID);
    assert_int_equal(most.err, OK);
    assert_int_equal(more.err, ERR_INVALID);
    done(&empty);
    done(&most);
    done(&more);
    free(longest);
    free(longer);
}

static void text_is_truncated_between_characters(void **state)
{
    (void)state;
    char *text = with_text("x", "ż", 80, "");
    struct slice clipped = text_clip(slice_of(text));
    assert_int_equal(clipped.len, 99);
    assert_true(text_is_utf8(clipped));
    assert_int_equal(text_clip(SLICE("short")).len, 5);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_option_is_rejected_by_name),
        cmocka_unit_test(limits_and_gates_must_be_declared),
        cmocka_unit_test(task_missing_in_the_locked_version_is_rejected),
        cmocka_unit_test(invalid_duration_is_rejected),
        cmocka_unit_test(lengths_are_counted_in_characters),
        cmocka_unit_test(too_large_metadata_error_names_the_limit),
        cmocka_unit_test(options_set_texts_of_the_run),
        cmocka_unit_test(payload_is_stored_by_its_type),
        cmocka_unit_test(payload_is_marked_as_json_or_not),
        cmocka_unit_test(options_set_numbers_of_the_run),
        cmocka_unit_test(invalid_debounce_is_rejected_with_what_to_send),
        cmocka_unit_test(debounce_sets_a_mark_and_delays_the_run),
        cmocka_unit_test(a_key_of_debounce_has_at_most_512_characters),
        cmocka_unit_test(a_header_wins_over_the_key_in_the_body),
        cmocka_unit_test(parent_is_returned_to_the_caller),
        cmocka_unit_test(task_name_length_is_limited),
        cmocka_unit_test(text_is_truncated_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
