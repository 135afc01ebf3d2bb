/* fuzz_cron - a cron expression in the first line, then the file of a time zone.
 *
 * Times only increase, each is one that the zone's clock shows or skips, and descriptions
 * are text. */
#include <assert.h>

#include "api/schedules/cron.h"
#include "base/text.h"
#include "tests/fuzz/judge.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t begin_ms = INT64_C(1700000000000);

static void check_times(const struct zone *zone)
{
    static const int64_t step_s = 86400 * 45 + 1801;
    for (int64_t wall = -2000000000; wall < INT64_C(6000000000); wall += step_s) {
        struct zone_times times = zone_times(zone, wall);
        assert(times.count >= 0 && times.count <= 2);
        if (times.count)
            assert(zone_wall(zone, times.first) == wall);
        if (times.count == 2)
            assert(zone_wall(zone, times.second) == wall && times.first != times.second);
    }
}

static void check_cron(const struct cron *cron, const struct zone *zone)
{
    struct buf words = { 0 };
    int64_t at = begin_ms;
    for (int i = 0; i < 5 && at; i++) {
        int64_t next = cron_next(cron, zone, at);
        assert(!next || (next > at && next % 1000 == 0));
        at = next;
        judge_rest();
    }
    cron_describe(cron, &words);
    assert(words.len && text_is_utf8(buf_slice(&words)));
    buf_finish(&words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice file = { (const char *)data, size }, text;
    struct zone *zone = NULL;
    struct cron cron;
    struct failure why;
    if (!slice_split(&file, '\n', &text))
        return 0;
    enum err err = file.len ? zone_read(SLICE("Test/Zone"), file, &zone)
                            : zone_open(SLICE("Europe/Berlin"), &zone);
    judge_rest();
    if (!err) {
        check_times(zone);
        judge_rest();
        if (!cron_read(text, &cron, &why))
            check_cron(&cron, zone);
    }
    zone_close(zone);
    return 0;
}
