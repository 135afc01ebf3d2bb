/* closest.h - finds the name that a user probably meant ("did you mean"). */
#pragma once

#include "base/slice.h"

/* Offer it each name; found is the closest one so far. */
struct closest {
    struct slice given;
    struct slice found; /* borrowed; absent: none is close */
    unsigned distance;  /* of found */
};

void closest_offer(struct closest *closest, struct slice name);
