/* fake_page.h - the documents of a scan as a store delivers them: in order, and cut. */
#pragma once

#include "runcast/store.h"

/* req->documents are all of the kind, in any order. */
void fake_page_cut(struct store_scan *req);
