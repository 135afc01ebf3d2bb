/* paging.c - reads the query parameters that choose a page; writes "pagination":{…}. */
#include "api/request/paging.h"

#include <inttypes.h>

/* Pages with larger numbers are past the last page too; the places of this one do not
 * overflow. */
static const uint64_t number_max = UINT32_MAX;

/* Returns false if the parameter is present and is not a number of 1 or more. */
static bool read_number(const struct api_call *call, const char *name, uint64_t max,
                        uint64_t *number)
{
    struct slice text = api_query(call, name);
    if (!text.ptr)
        return true;
    if (text_to_u64(text, number) || !*number)
        return false;
    *number = *number < max ? *number : max;
    return true;
}

const char *paging_read(struct api_call *call, struct numbered_page *page)
{
    if (!read_number(call, "page", number_max, &page->number))
        return "page";
    if (!read_number(call, "perPage", number_max, &page->size))
        return "perPage";
    if (page->size > PAGE_SIZE_MAX) {
        page->size = PAGE_SIZE_MAX;
        ignored_add_parameter(&call->ignored, SLICE("perPage"));
    }
    return NULL;
}

uint64_t paging_first(const struct numbered_page *page)
{
    return (page->number - 1) * page->size;
}

uint64_t paging_end(const struct numbered_page *page)
{
    return page->number * page->size;
}

void paging_add(struct buf *out, const struct numbered_page *page, uint64_t count)
{
    buf_print(out,
              "\"pagination\":{\"currentPage\":%" PRIu64 ",\"totalPages\":%" PRIu64
              ",\"count\":%" PRIu64 "}",
              page->number, (count + page->size - 1) / page->size, count);
}

enum err paging_read_size(struct api_call *call, uint64_t max, uint64_t *size)
{
    struct slice text = slice_trim(api_query(call, "page[size]"));
    if (text.len && (text_to_u64(text, size) || !*size || *size > max))
        return explain(&call->why, ERR_INVALID,
                       "page[size]: must be a number from 1 to %" PRIu64, max);
    return OK;
}
