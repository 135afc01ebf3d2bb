/* paging.c - reads the query parameters that choose a page; writes "pagination":{…}. */
#include "api/request/paging.h"

#include <inttypes.h>

enum { PER_PAGE = 25 }; /* unless the query says otherwise */

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

enum err paging_reply(struct api_call *call, uint64_t count, paging_item_fn *add_item)
{
    struct numbered_page page = { .number = 1, .size = PER_PAGE };
    struct buf out = { 0 };
    const char *wrong = paging_read(call, &page);
    if (wrong)
        return explain(&call->why, ERR_INVALID, "%s: must be a number from 1 to %u", wrong,
                       UINT32_MAX);
    buf_add_text(&out, "{\"data\":[");
    for (uint64_t i = paging_first(&page); i < paging_end(&page) && i < count; i++) {
        if (out.ptr[out.len - 1] != '[')
            buf_add_char(&out, ',');
        add_item(&out, call->env, i);
    }
    buf_add_text(&out, "],");
    paging_add(&out, &page, count);
    buf_add_char(&out, '}');
    api_reply_json(call, 200, buf_slice(&out));
    buf_finish(&out);
    return OK;
}
