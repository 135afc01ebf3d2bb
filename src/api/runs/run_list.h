/* run_list.h - pages of the runs of an environment, of a project, or triggered by a run. */
#pragma once

#include "api/request/route.h"

route_fn run_list, run_list_project, run_list_children;

/* Replies when the store failed to find the runs of a filter. */
void run_list_refuse(struct api_call *call, enum store_status status);

/* Reports from and to as ignored if there is a period, which takes precedence. */
void run_list_report_times(struct api_call *call);
