/* replication_scene.h - a leader and a follower on one store.
 *
 *   leader: world's engine ─► source ─► frames, in a list ─► replica ─► copy: an environment
 *
 * Frames arrive when the test delivers them. The accounts are a single document. */
#pragma once

#include "core/replication/replica.h"
#include "core/replication/source.h"
#include "tests/support/world/reader.h"
#include "tests/support/world/world.h"

enum { OTHER_ENV = WORLD_ENV + 1, LEFT_MS = 4000, SMALL_MEMORY = 16 * 1024, PACKET = 600 };

struct sent_frame {
    struct repl_frame frame;
    struct list link; // replication_scene::to_follower or ::to_leader
};

struct replication_scene {
    struct world *world;
    struct source source;
    struct source_follower follower;
    struct replica replica;
    struct environment *copy;
    struct environment *other;          /* of OTHER_ENV, which only the follower has */
    struct list to_follower, to_leader; // sent_frame::link
    int64_t left_ms;                    /* of the leader */
    bool is_slow;                       /* source_options, as the next one */
    size_t allowance;                   /* SIZE_MAX */
    bool has_dropped;                   /* the leader has no environment in memory */
    char ended[REPL_WHY_MAX];           /* why the follower or the leader ended it */
    bool gave_up;
    int loads; /* replica_load ended so often */
    enum err load_status;
    unsigned answers, floors;
    unsigned runs_sent, payloads_sent, outputs_sent, befores_sent;
    uint64_t account_version; /* of the only document of the accounts */
    unsigned account_reads;
    uint64_t accounts_seq; /* the position that they were read at; 0: unknown */
    unsigned document_ends, ends_at_change; /* so far; when a change was applied last */
    bool refuses_documents;                 /* when they take effect */
};

/* For cmocka: *state becomes the scene. */
int open_replication_scene(void **state);
int close_replication_scene(void **state);

/* Delivers the first frame to the follower. */
void scene_deliver_first(struct replication_scene *scene);

/* Delivers the frames that were sent so far. */
void scene_deliver(struct replication_scene *scene);

/* Lets time pass and delivers frames, until nothing is left to do. */
void scene_pass(struct replication_scene *scene, int64_t ms);

/* Ends the connection, and forgets frames in flight and why it ended. */
void scene_disconnect(struct replication_scene *scene);

/* The same, and then opens another one. */
void scene_connect(struct replication_scene *scene);

void scene_drop_first(struct list *list);
void scene_drop_all(struct replication_scene *scene);

/* Removes settled runs from the database, and then from the leader's memory. */
void scene_purge(struct replication_scene *scene);

const struct run *run_in(const struct environment *env, const char *id);
void assert_same_run(const struct replication_scene *scene, const char *id);

/* Requires that the connection has not ended, and that both have the same unfinished runs. */
void assert_same_memory(const struct replication_scene *scene);
bool is_trusted(struct replication_scene *scene);
