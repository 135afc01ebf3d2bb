/* api_scene.h - an api_world for each test, with short functions for its calls.
 *
 *   post("{\"runCount\":2}", "/api/v3/batches");
 *   assert_answered(202);
 *   assert_says("runCount", "2");
 *
 * At the end of a test, all quota that its calls took must have been returned. */
#pragma once

#include "tests/support/world/api_world.h"
#include "tests/support/world/unit.h"

extern struct api_world scene;

/* Setup and teardown of a test. The teardown fails if quota is still in use. */
int scene_open(void **state);
int scene_close(void **state);

/* Adds complete header lines to the next call only. */
void with_headers(const char *headers);

/* The next call, and no other, uses this credential instead of the key of dev. */
void with_key(enum api_key key);

/* target is a format. */
void post(const char *body, const char *target, ...) __attribute__((format(printf, 2, 3)));
void get(const char *target, ...) __attribute__((format(printf, 1, 2)));

/* Asserts about the last response. A value is found by its path, "runs.0.id"; a string is
 * compared decoded, any other value as it is written. value NULL: the path must be
 * missing. */
void assert_answered(int status);
void assert_says(const char *path, const char *value);

/* Asserts that the last response contains the text, as it is written. */
void assert_holds(const char *text);

/* Copies a string of the last response. */
void keep(const char *path, char *out, size_t size);

/* Returns the memory that items of batches use now. */
size_t scene_batch_bytes(void);

/* Creates a run of task hello that a worker has started. */
void start_run(char id[ID_MAX]);

/* status: EXECUTING, EXECUTING_WITH_WAITPOINTS, … */
void assert_execution(const char *run, const char *status);

/* Waits for the status, which may depend on other reads of the store. */
void await_execution(const char *run, const char *status);
