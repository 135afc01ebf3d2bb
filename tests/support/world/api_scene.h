/* api_scene.h - an api_world for each test, its calls in few words, and what they answer.
 *
 *   post("{\"runCount\":2}", "/api/v3/batches");
 *   assert_answered(202);
 *   assert_says("runCount", "2");
 *
 * With the end of a test everything must have been given back that its calls took. */
#pragma once

#include "tests/support/world/api_world.h"
#include "tests/support/world/unit.h"

extern struct api_world scene;

/* Setup and teardown of a test. The teardown fails where rooms are not empty. */
int scene_open(void **state);
int scene_close(void **state);

/* Complete header lines of the next call only. */
void with_headers(const char *headers);

/* The next call only has this credential, not the key of dev. */
void with_key(enum api_key key);

/* The target is a format. */
void post(const char *body, const char *target, ...) __attribute__((format(printf, 2, 3)));
void get(const char *target, ...) __attribute__((format(printf, 1, 2)));

/* About the last answer. A value is found by its path, "runs.0.id"; a text is compared as
 * what it says, others as they are written. NULL: it is not there. */
void assert_answered(int status);
void assert_says(const char *path, const char *value);

/* Somewhere in it, as it is written. */
void assert_holds(const char *text);

/* A text of the last answer. */
void keep(const char *path, char *out, size_t size);

/* Memory that items of batches take now. */
size_t scene_batch_bytes(void);

/* A run of hello that a worker has started. */
void start_run(char id[ID_MAX]);

/* EXECUTING, EXECUTING_WITH_WAITPOINTS, … */
void assert_execution(const char *run, const char *status);

/* It may become so only after something else has been read from the store. */
void await_execution(const char *run, const char *status);
