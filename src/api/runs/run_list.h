/* run_list.h - pages of runs: of the key's environment, of a user's project, and those that a
 * run has triggered. */
#pragma once

#include "api/request/route.h"

route_fn run_list, run_list_project, run_list_children;

/* Answers for a store that did not find what a filter asks for. */
void run_list_refuse(struct api_call *call, enum store_status status);

/* A period counts instead of from and to: tells those that nobody reads. */
void run_list_tell_times(struct api_call *call);
