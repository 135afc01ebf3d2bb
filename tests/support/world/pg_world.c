/* pg_world.c - the child with the server and its relay, one line per request. */
#include "tests/support/world/pg_world.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
    pid_t child;
    FILE *orders, *answers;
    char url[96], relay_url[96];
    char answer[65536];
} world;

/* Returns the child's next line, without its `ok `. */
static const char *next_answer(const char *order)
{
    if (!fgets(world.answer, sizeof(world.answer), world.answers))
        fail_msg("%s: PostgreSQL's world has ended", order);
    world.answer[strcspn(world.answer, "\n")] = '\0';
    if (strncmp(world.answer, "ok ", 3))
        fail_msg("%s: %s", order, world.answer);
    return world.answer + 3;
}

int pg_world_set_up(void **state)
{
    (void)state;
    int to[2], from[2];
    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    world.child = fork();
    assert_true(world.child >= 0);
    if (world.child == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        execlp("node", "node", PG_WORLD_SCRIPT, (char *)NULL);
        perror("node");
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    world.orders = fdopen(to[1], "w");
    world.answers = fdopen(from[0], "r");
    int port, relay_port;
    assert_int_equal(sscanf(next_answer("start"), "%d %d", &port, &relay_port), 2);
    snprintf(world.url, sizeof(world.url), "postgresql://runcast@127.0.0.1:%d/runcast",
             port);
    snprintf(world.relay_url, sizeof(world.relay_url),
             "postgresql://runcast@127.0.0.1:%d/runcast", relay_port);
    return 0;
}

int pg_world_tear_down(void **state)
{
    (void)state;
    fclose(world.orders);
    waitpid(world.child, NULL, 0);
    fclose(world.answers);
    return 0;
}

const char *pg_world_url(void)
{
    return world.url;
}

const char *pg_world_relay_url(void)
{
    return world.relay_url;
}

const char *pg_world_ask(const char *sql)
{
    return pg_world_order("ask %s", sql);
}

const char *pg_world_order(const char *format, ...)
{
    char order[8192];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(order, sizeof(order), format, args);
    va_end(args);
    assert_true(length > 0 && (size_t)length < sizeof(order) && !strchr(order, '\n'));
    fprintf(world.orders, "%s\n", order);
    fflush(world.orders);
    return next_answer(order);
}

void pg_world_strike(const char *what, enum pg_side from, unsigned n, const char *of)
{
    pg_world_order("order %s %s %u %s", what, from == PG_CLIENT ? "client" : "server", n,
                   of);
}

bool pg_world_struck(void)
{
    return !strcmp(pg_world_order("struck"), "1");
}
