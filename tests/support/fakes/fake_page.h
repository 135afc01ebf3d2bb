/* fake_page.h - the documents of a scan as a store delivers them: in order, page by
 * page. */
#pragma once

#include "runcast/store.h"

/* req->documents has all documents of the kind, in any order. */
void fake_page_cut(struct store_scan *req);
