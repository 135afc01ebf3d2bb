/* paging.h - which page of a list a call requests.
 *
 *   ?page=3&perPage=20              by number: lists whose length is known
 *   ?page[size]=20&page[after]=…    after a cursor, whose form each list defines */
#pragma once

#include "api/request/call.h"

enum { PAGE_SIZE_MAX = 100 };

struct numbered_page {
    uint64_t number; /* from 1 */
    uint64_t size;   /* at most PAGE_SIZE_MAX */
};

/* Reads page and perPage over the defaults in page. Returns NULL, or the name of the
 * parameter that is not a number of 1 or more. A size above PAGE_SIZE_MAX becomes
 * PAGE_SIZE_MAX, which is reported to the caller. */
const char *paging_read(struct api_call *call, struct numbered_page *page);

/* The page's range in the list: from the first up to, but excluding, the end. */
uint64_t paging_first(const struct numbered_page *page);
uint64_t paging_end(const struct numbered_page *page);

/* Appends "pagination":{…} for a list of count items. */
void paging_add(struct buf *out, const struct numbered_page *page, uint64_t count);

/* Reads page[size] over the default in size. Returns ERR_INVALID unless it is 1 to max. */
enum err paging_read_size(struct api_call *call, uint64_t max, uint64_t *size);

/* Appends the item at this place, from 0, as JSON. */
typedef void paging_item_fn(struct buf *out, const struct environment *env, uint64_t place);

/* Replies with the page that the query asks for, of `count` items. Returns ERR_INVALID, with
 * the reason in call->why, if the query is wrong. */
enum err paging_reply(struct api_call *call, uint64_t count, paging_item_fn *add_item);
