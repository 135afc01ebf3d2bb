/* answer_cron.c - answers for cron.test.mjs: reads lines on stdin, writes one line for
 * each.
 *
 *     next|ZONE|EXPRESSION|FROM_MS|TO_MS     the times in between, in s; or "refused"
 *     offset|ZONE|UNIX_S                     seconds to add to UTC; or "unknown" */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "api/schedules/cron.h"

static struct zone *zone;

static bool change_zone(const char *name)
{
    if (zone && strcmp(zone_name(zone), name) == 0)
        return true;
    zone_close(zone);
    zone = NULL;
    return zone_open(slice_of(name), &zone) == OK;
}

static void print_times(const char *expression, int64_t from_ms, int64_t to_ms)
{
    struct cron cron;
    struct failure why;
    if (cron_read(slice_of(expression), &cron, &why)) {
        printf("refused\n");
        return;
    }
    while ((from_ms = cron_next(&cron, zone, from_ms)) && from_ms < to_ms)
        printf("%" PRId64 " ", from_ms / 1000);
    printf("\n");
}

int main(void)
{
    char line[512], name[80], text[280];
    int64_t from, to;
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "offset|%79[^|]|%" SCNd64, name, &from) == 2) {
            if (change_zone(name))
                printf("%d\n", zone_offset(zone, from));
            else
                printf("unknown\n");
        } else if (sscanf(line, "next|%79[^|]|%279[^|]|%" SCNd64 "|%" SCNd64, name, text,
                          &from, &to) == 4 &&
                   change_zone(name)) {
            print_times(text, from, to);
        } else {
            printf("refused\n");
        }
    }
    zone_close(zone);
    return 0;
}
