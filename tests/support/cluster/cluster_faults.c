/* cluster_faults.c - the table of deliberate faults. */
#include "tests/support/cluster/cluster_faults.h"

#include <string.h>

const struct cluster_fault_row cluster_faults[FAULT_COUNT] = {
    [FAULT_NONE] = { "none", "no fault", "", 1, 0 },
    [FAULT_SKIPPED_CHANGE] = { "skipped_change", "a follower skips some changes of runs",
                               "at sync|a poll gets|counts", 1, 10 },
    [FAULT_SERVES_IN_DOUBT] = { "serves_in_doubt", "a follower always trusts its memory",
                                "in sync|a poll gets", 1, 10 },
    [FAULT_EARLY_SNAPSHOT] = { "early_snapshot",
                               "a subscription starts below the position of the leader",
                               "below the position", 1, 20 },
    [FAULT_FORWARDED_TWICE] = { "forwarded_twice",
                                "a follower repeats a request that must not be repeated",
                                "is executed twice", 1, 20 },
    [FAULT_UNFENCED] = { "unfenced", "the database accepts writes of an earlier term",
                         "a leader of term", 1, 20 },
    [FAULT_LATE_REVOCATION] = { "late_revocation",
                                "a follower applies changes of keys 6 s late",
                                "its revocation", 1, 10 },
    [FAULT_SESSION_ENDS] = { "session_ends",
                             "a leader with a session trusts itself as long as without",
                             "in sync under term", 1, 20 },
    [FAULT_DOUBTING_BEATS] = { "doubting_beats", "a leader in doubt sends beats", "in sync",
                               1, 40 },
    [FAULT_NO_BEFORE] = { "no_before",
                          "a change of a settled run comes without its state before",
                          "counts|output is", 1, 10 },
    [FAULT_POLL_BEHIND] = { "poll_behind",
                            "a gateway that is behind takes a poll's position for one of "
                            "another history",
                            "a poll gets", 1, 20 },
    [FAULT_TRUST_FROM_ARRIVAL] = { "trust_from_arrival",
                                   "trust counts from the arrival of a beat", "in sync", 20,
                                   40 },
    [FAULT_AHEAD_OF_LEADER] = { "ahead_of_leader",
                                "a follower shows commits that its leader has not applied",
                                "a poll gets", 30, 40 },
    [FAULT_KEEPS_PURGED] = { "keeps_purged",
                             "a follower below the purged position catches up",
                             "does not have", 42, 40 },
    [FAULT_PAGE_AHEAD] = { "page_ahead",
                           "a page of the store is used before its changes are applied",
                           "a poll gets|at sync", 1, 40 },
    [FAULT_KEEPS_RING] = { "keeps_ring",
                           "after catching up, the ring stands for numbers that were left "
                           "out",
                           "a poll gets|at sync", 1, 40 },
    [FAULT_KEEPS_COUNTS] = { "keeps_counts",
                             "after catching up, runs are not counted again", "counts", 1,
                             40 },
    [FAULT_SHOWN_ALONE] = { "shown_alone",
                            "an environment is shown while it is read from the database",
                            "at sync|a poll gets|in sync|shows", 140, 40 },
    [FAULT_HELD_ANSWER] = { "held_answer",
                            "an answer confirms an environment whose changes wait",
                            "at sync|a poll gets|in sync|shows", 1, 40 },
};

enum cluster_fault cluster_fault;

enum cluster_fault cluster_fault_named(const char *name)
{
    int fault = FAULT_NONE;
    while (fault < FAULT_COUNT && strcmp(cluster_faults[fault].name, name) != 0)
        fault++;
    return (enum cluster_fault)fault;
}
