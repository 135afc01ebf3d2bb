/* page.c - serves browsers the dashboard, or a text page where it is not shown.
 *
 * The dashboard (src/web/dashboard) is a JavaScript program that calls the API like any
 * other client. The text page explains how to look at a run without it.
 *
 * The dashboard is one page for all addresses that links of the CLI lead to: it reads the
 * address itself. Pages contain nothing from the request. No cookie opens anything but
 * POST /dashboard/session, which is for own pages only (session.c). Names of hosts are checked, so that a stranger's host name cannot lead a browser to the
 * dashboard on its user's own machine. */
#include "api/browser/own_host.h"
#include "api/browser/web_file.h"
#include "api/request/route.h"

static const char page[] =
    "<!doctype html>\n"
    "<html lang=\"en\">\n"
    "<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<title>runcast</title>\n"
    "<h1>runcast</h1>\n"
    "<p>This gateway manages runs of background tasks. It does not show its "
    "dashboard\n"
    "here (<code>--dashboard</code>). The API has the same data, for a secret key of the\n"
    "environment. The link of a run ends with its id, <code>run_…</code>.</p>\n"
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

/* Adds a policy that allows the program's own files and calls only, or nothing. uPlot and
 * preact set styles through the object model, which needs no exception. */
static void add_policy(struct api_call *call, bool is_program)
{
    api_add_header(call, "content-security-policy",
                   is_program
                       ? SLICE("default-src 'none'; script-src 'self'; style-src 'self'; "
                               "img-src 'self'; connect-src 'self'; base-uri 'none'; "
                               "form-action 'none'; frame-ancestors 'none'")
                       : SLICE("default-src 'none'; base-uri 'none'; form-action 'none'; "
                               "frame-ancestors 'none'"));
    api_add_header(call, "x-frame-options", SLICE("DENY"));
    api_add_header(call, "cross-origin-opener-policy", SLICE("same-origin"));
    api_add_header(call, "cross-origin-resource-policy", SLICE("same-origin"));
    api_add_header(call, "referrer-policy", SLICE("no-referrer"));
}

static enum err show_text(struct api_call *call)
{
    add_policy(call, false);
    api_add_header(call, "x-content-type-options", SLICE("nosniff"));
    api_reply_text(call, 200, "text/html; charset=utf-8", slice_of(page));
    return OK;
}

#ifdef RUNCAST_DASHBOARD
#define WEB_FILE(name)                                                                     \
    extern const char name[], name##_gzip[], name##_tag[];                                 \
    extern const unsigned name##_len, name##_gzip_len

WEB_FILE(dashboard_html);
WEB_FILE(dashboard_js);
WEB_FILE(dashboard_css);
WEB_FILE(dashboard_icon);

/* Browsers check each time whether they have the newest file, and get 304 if they do. */
static const char cache_control[] = "no-cache";

static enum err refuse_host(struct api_call *call)
{
    add_policy(call, false);
    api_add_header(call, "x-content-type-options", SLICE("nosniff"));
    api_reply_text(
        call, 421, "text/plain; charset=utf-8",
        SLICE("This gateway shows its dashboard at its address and at localhost. To "
              "show it at this name, start it with\n\n"
              "    --public-url https://NAME\n\n"
              "NAME being what the browser's address bar has, with its port.\n"));
    return OK;
}

static enum err show_file(struct api_call *call, const struct web_file *file)
{
    if (!own_host_has_dashboard(call))
        return ERR_NOT_FOUND;
    add_policy(call, true);
    return web_file_show(call, file);
}

/* Serves the page with prefix before each of its paths. The page names its files by
 * absolute paths; behind a proxy that shows the gateway under a path, they must begin with
 * that path. The operator sets the prefix (public-url). */
static enum err show_page_under(struct api_call *call, struct slice prefix)
{
    static const char mark[] = "\"/dashboard/";
    struct slice rest = { dashboard_html, dashboard_html_len };
    struct buf text = { 0 };
    for (const char *at; (at = memmem(rest.ptr, rest.len, mark, sizeof(mark) - 1));) {
        size_t len = (size_t)(at + 1 - rest.ptr);
        buf_add(&text, (struct slice){ rest.ptr, len });
        buf_add(&text, prefix);
        rest = slice_from(rest, len);
    }
    buf_add(&text, rest);
    add_policy(call, true);
    api_add_header(call, "x-content-type-options", SLICE("nosniff"));
    api_let_cache(call, cache_control);
    api_reply_text(call, 200, "text/html; charset=utf-8", buf_slice(&text));
    buf_finish(&text);
    return OK;
}

static enum err show_page(struct api_call *call)
{
    struct slice prefix = api_path_prefix(call->api);
    const struct web_file file = { { dashboard_html, dashboard_html_len },
                                   { dashboard_html_gzip, dashboard_html_gzip_len },
                                   dashboard_html_tag,
                                   "text/html; charset=utf-8",
                                   cache_control };
    if (!own_host_has_dashboard(call))
        return show_text(call);
    if (!own_host_is_named(call))
        return refuse_host(call);
    return prefix.len ? show_page_under(call, prefix) : show_file(call, &file);
}

static enum err show_program(struct api_call *call)
{
    const struct web_file file = { { dashboard_js, dashboard_js_len },
                                   { dashboard_js_gzip, dashboard_js_gzip_len },
                                   dashboard_js_tag,
                                   "text/javascript; charset=utf-8",
                                   cache_control };
    return show_file(call, &file);
}

static enum err show_style(struct api_call *call)
{
    const struct web_file file = { { dashboard_css, dashboard_css_len },
                                   { dashboard_css_gzip, dashboard_css_gzip_len },
                                   dashboard_css_tag,
                                   "text/css; charset=utf-8",
                                   cache_control };
    return show_file(call, &file);
}

static enum err show_icon(struct api_call *call)
{
    const struct web_file file = { { dashboard_icon, dashboard_icon_len },
                                   { dashboard_icon_gzip, dashboard_icon_gzip_len },
                                   dashboard_icon_tag,
                                   "image/svg+xml",
                                   cache_control };
    return show_file(call, &file);
}
#else
#define show_page show_text
#define show_program show_text
#define show_style show_text
#define show_icon show_text
#endif

/* clang-format off */
static const struct route routes[] = {
    { .method = HTTP_GET_, .path = "/",
      .handle = show_page,
      .id = "page",
      .summary = "The dashboard, for browsers",
      .gives = "text/html",
      .reply = "string",
      .also = "304 421" },
    { .method = HTTP_GET_, .path = "/projects/{path*}",
      .handle = show_page,
      .id = "page_of_project", .summary = "The dashboard, where links of the CLI lead",
      .gives = "text/html",
      .reply = "string",
      .also = "304 421" },
    { .method = HTTP_GET_, .path = "/runs/{runId}",
      .handle = show_page,
      .id = "page_of_run", .summary = "The dashboard, at a run",
      .gives = "text/html",
      .reply = "string",
      .also = "304 421" },
    { .method = HTTP_GET_, .path = "/account/authorization-code/{code}",
      .handle = show_page,
      .id = "page_of_login", .summary = "The dashboard, where a login of the CLI is approved",
      .gives = "text/html",
      .reply = "string",
      .also = "304 421" },
    { .method = HTTP_GET_, .path = "/account/tokens",
      .handle = show_page,
      .id = "page_of_tokens", .summary = "The dashboard, where the CLI sends users without a token",
      .gives = "text/html",
      .reply = "string",
      .also = "304 421" },
    { .method = HTTP_GET_, .path = "/login",
      .handle = show_page,
      .id = "page_of_sign_in", .summary = "The dashboard, where a user signs in",
      .gives = "text/html",
      .reply = "string",
      .also = "304 421" },
    { .method = HTTP_GET_, .path = "/orgs/{path*}",
      .handle = show_page,
      .id = "page_of_organization",
      .summary = "The dashboard, where links of the CLI to an organization lead",
      .gives = "text/html",
      .reply = "string",
      .also = "304 421" },
    { .method = HTTP_GET_, .path = "/dashboard/app.js",
      .handle = show_program,
      .id = "page_program", .summary = "The program of the dashboard",
      .gives = "text/javascript",
      .reply = "string",
      .also = "304 404" },
    { .method = HTTP_GET_, .path = "/dashboard/app.css",
      .handle = show_style,
      .id = "page_style", .summary = "How the dashboard looks",
      .gives = "text/css",
      .reply = "string",
      .also = "304 404" },
    { .method = HTTP_GET_, .path = "/dashboard/icon.svg",
      .handle = show_icon,
      .id = "page_icon", .summary = "The picture of the dashboard",
      .gives = "image/svg+xml",
      .reply = "string",
      .also = "304 404" },
    { 0 },
};
/* clang-format on */

const struct area page_area = { .tag = "admin", .routes = routes };
