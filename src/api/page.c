/* page.c - what somebody sees who opens the gateway in a browser, or follows a link of the CLI
 * into the dashboard of Trigger.dev: that there is none, and how to look at a run without it.
 *
 * The page is one text. Nothing of the request is in it, and it asks the browser for nothing:
 * no script, no style, no picture, no form. */
#include "call/call.h"
#include "call/route.h"

static const char page[] =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>runcast</title>\n"
    "<h1>runcast</h1>\n"
    "<p>This gateway manages runs of background tasks. It has no dashboard: the links "
    "that\n"
    "<code>trigger.dev dev</code> prints lead here. What a dashboard shows is behind the "
    "API,\n"
    "for who has a secret key of the environment. The id of a run, <code>run_…</code>, is "
    "the\n"
    "end of its link.</p>\n"
    "<h2>Look at a run</h2>\n"
    "<pre>export TRIGGER_API_URL=<i>the address of this page, without its path</i>\n"
    "export TRIGGER_SECRET_KEY=tr_dev_…   # runcast keys prints it\n"
    "\n"
    "auth=\"Authorization: Bearer $TRIGGER_SECRET_KEY\"\n"
    "curl -H \"$auth\" $TRIGGER_API_URL/api/v3/runs/run_…           # status, output, "
    "error\n"
    "curl -H \"$auth\" $TRIGGER_API_URL/api/v1/runs/run_…/trace     # spans and logs\n"
    "curl -H \"$auth\" $TRIGGER_API_URL/api/v1/runs                 # the newest runs\n"
    "curl -N -H \"$auth\" \"$TRIGGER_API_URL/realtime/v1/events?run=run_…\"  # every "
    "change\n"
    "curl -X POST -H \"$auth\" $TRIGGER_API_URL/api/v2/runs/run_…/cancel\n"
    "curl -X POST -H \"$auth\" $TRIGGER_API_URL/api/v1/runs/run_…/replay</pre>\n"
    "<p>From the SDK: <code>await runs.retrieve(\"run_…\")</code>. In a terminal:\n"
    "<code>npx trigger.dev runs list --env dev</code>. Every call: <a "
    "href=\"/openapi.json\">\n"
    "/openapi.json</a>.</p>\n"
    "</html>\n";

static enum err show_page(struct api_call *call)
{
    api_add_header(call, "content-security-policy",
                   SLICE("default-src 'none'; base-uri 'none'; form-action 'none'; "
                         "frame-ancestors 'none'"));
    api_add_header(call, "x-content-type-options", SLICE("nosniff"));
    api_add_header(call, "referrer-policy", SLICE("no-referrer"));
    api_reply_text(call, 200, "text/html; charset=utf-8", slice_of(page));
    return OK;
}

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/",
      .handle = show_page,
      .id = "page",
      .summary = "For browsers: that there is no dashboard, and how to look at a run",
      .gives = "text/html",
      .reply = "string" },
    { .method = HTTP_GET_, .path = "/projects/{path*}",
      .handle = show_page,
      .id = "page_of_project", .summary = "The same page, where links of the CLI lead",
      .gives = "text/html",
      .reply = "string" },
    { 0 },
};
/* clang-format on */

const struct area page_area = { .tag = "admin", .routes = routes };
