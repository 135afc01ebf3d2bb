/* first_start.c - prints a first start's keys, a link to the dashboard and the next
 * command. */
#include "server/memory/first_start.h"

#include <string.h>

enum err first_start_prepare(struct first_start *first, struct failure *why)
{
    enum err refused = bootstrap_prepare(&first->made, why);
    if (!refused && first->prints_keys && !first->made.from_environment &&
        strncmp(first->dashboard_url, "http", 4) == 0)
        bootstrap_generate_link(first->made.link);
    return refused;
}

static void print_keys(FILE *out, const struct bootstrap *made)
{
    fprintf(out, "\nruncast made a project and its keys. The token is shown only now.\n"
                 "The command `runcast keys` prints the other keys again, and\n"
                 "`runcast keys --new-personal-token` makes another token.\n\n");
    fprintf(out, "  project      %s\n", made->project_ref);
    for (int type = 0; type < ENVIRONMENT_TYPES; type++)
        fprintf(out, "  %-12s %s\n", environment_path_slug((enum environment_type)type),
                made->secret_keys[type]);
    fprintf(out, "  token        %s\n\n", made->personal_token);
}

static void print_exports(FILE *out, const char *url, const struct bootstrap *made)
{
    if (strncmp(url, "unix:", 5) == 0)
        fprintf(out,
                "It listens only at %s, which the SDKs and the CLI cannot connect to.\n"
                "Put a proxy in front of it, and give the proxy's address as --public-url\n"
                "and as TRIGGER_API_URL. Paste into a shell:\n\n  export ",
                url);
    else
        fprintf(out, "Paste into a shell:\n\n  export TRIGGER_API_URL=%s ", url);
    fprintf(out, "TRIGGER_SECRET_KEY=%s\n", made->secret_keys[ENVIRONMENT_DEV]);
    fprintf(out, "  export TRIGGER_PROJECT_REF=%s TRIGGER_ACCESS_TOKEN=%s\n\n",
            made->project_ref, made->personal_token);
}

static void print_next(FILE *out, const char *dashboard_url, const struct bootstrap *made)
{
    fprintf(out, "Then execute your tasks, in the folder with trigger.config.ts:\n\n"
                 "  npx trigger.dev dev\n\n");
    if (*made->link)
        fprintf(
            out,
            "Open the dashboard. This link signs you in once, within 5 minutes; runcast\n"
            "dashboard prints another:\n\n  %s/#signin=%s\n\n",
            dashboard_url, made->link);
}

void first_start_print(struct first_start *first)
{
    const struct bootstrap *made = &first->made;
    if (!first->is_made)
        return;
    first->is_made = false;
    if (made->from_environment) {
        fprintf(first->out, "runcast made project %s with the keys given.\n",
                made->project_ref);
    } else if (first->prints_keys) {
        print_keys(first->out, made);
        print_exports(first->out, first->url, made);
        print_next(first->out, first->dashboard_url, made);
    } else {
        fprintf(first->out,
                "runcast made project %s and its keys: runcast keys --new-personal-token "
                "--data %s prints them.\n",
                made->project_ref, first->data);
    }
    fflush(first->out);
    first_start_finish(first);
}

void first_start_finish(struct first_start *first)
{
    bootstrap_finish(&first->made);
}
